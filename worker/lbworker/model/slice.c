/* SPDX-License-Identifier: MIT */
/* slice.c - the arithmetic of slices: sizes, and runs of elements. */
#include "worker/lbworker/model/slice.h"

#include <stdio.h>

#include "worker/lbworker/families/family.h"

size_t slice_extent(const struct model_shape *s, enum extent extent)
{
	size_t head_dim = model_head_dim(s);

	switch (extent) {
	case EXTENT_NONE:
		return 1;
	case EXTENT_DIM:
		return s->dim;
	case EXTENT_QUERY:
		return s->heads * head_dim;
	case EXTENT_KEY:
		return s->kv_heads * head_dim;
	case EXTENT_QKV:
		return model_qkv_width(s);
	case EXTENT_HEAD:
		return head_dim;
	case EXTENT_FFN:
		return s->ffn;
	case EXTENT_EXPERTS:
		return s->experts.count;
	case EXTENT_EXPERT:
		return s->experts.ffn;
	case EXTENT_SHARED_EXPERTS:
		return model_shared_width(s);
	case EXTENT_VOCAB:
		return s->vocab;
	case EXTENT_POSITIONS:
		return s->positions;
	}
	return 0;
}

static bool is_cut(enum extent extent)
{
	return extent == EXTENT_QUERY || extent == EXTENT_KEY || extent == EXTENT_QKV ||
	       extent == EXTENT_FFN || extent == EXTENT_VOCAB;
}

/* Where the part of `rank` of `size` elements begins. */
static size_t begin_of(size_t size, int rank, int degree)
{
	return size * (size_t)rank / (size_t)degree;
}

static bool divides(const struct model_shape *s, size_t degree)
{
	return s->heads % degree == 0 && s->kv_heads % degree == 0 && s->ffn % degree == 0 &&
	       degree <= s->vocab;
}

int slice_check(const struct model_shape *s, const struct model_split *split, struct err *err)
{
	char possible[128] = "";
	size_t used = 0;

	if (split->degree <= 1 ||
	    (model_can_be_split(s->family) && divides(s, (size_t)split->degree)))
		return 0;
	if (!model_can_be_split(s->family))
		return err_set(err, ERR_USAGE,
			       "%s cannot be split: its norms, or its experts, are whole",
			       model_family_name(s->family));
	for (size_t degree = 1; degree <= s->kv_heads && used < sizeof(possible) - 8; degree++)
		if (divides(s, degree))
			used += (size_t)snprintf(possible + used, sizeof(possible) - used, "%s%zu",
						 used ? ", " : "", degree);
	return err_set(err, ERR_USAGE,
		       "%d must divide n_heads %zu, n_kv_heads %zu and ffn_dim %zu: %s",
		       split->degree, s->heads, s->kv_heads, s->ffn, possible);
}

struct model_shape slice_shape(const struct model_shape *s, const struct model_split *split)
{
	struct model_shape here = *s;
	size_t degree = (size_t)split->degree;

	if (split->degree <= 1)
		return here;
	here.head_dim = model_head_dim(s);
	here.heads /= degree;
	here.kv_heads /= degree;
	here.ffn /= degree;
	here.vocab = begin_of(s->vocab, split->rank + 1, split->degree) -
		     begin_of(s->vocab, split->rank, split->degree);
	return here;
}

struct vocab_slice slice_vocab(const struct model *m)
{
	const struct model_split *split = &m->options.split;

	if (!m->whole)
		return (struct vocab_slice){ 0, m->shape.vocab, 1 };
	return (struct vocab_slice){ begin_of(m->whole->shape.vocab, split->rank, split->degree),
				     m->shape.vocab, (size_t)split->degree };
}

/* A side that is cut is one run of each of its blocks: query, key and value one behind the other
 * are three. */
static void cut(struct slice_walk *w, const struct model *m, enum extent extent, size_t each)
{
	const struct model_split *split = &m->options.split;
	const struct model_shape *s = &model_whole(m)->shape;
	bool is_three = extent == EXTENT_QKV && !m->family->interleaved;
	size_t begin = 0;

	w->blocks = is_three ? 3 : 1;
	for (size_t b = 0; b < w->blocks; b++) {
		enum extent block = !is_three ? extent : b == 0 ? EXTENT_QUERY : EXTENT_KEY;
		size_t size = slice_extent(s, block);
		size_t from = begin_of(size, split->rank, split->degree);
		w->first[b] = (begin + from) * each;
		w->size[b] = (begin_of(size, split->rank + 1, split->degree) - from) * each;
		begin += size;
	}
}

struct slice_walk slice_begin(const struct model *m, size_t tensor)
{
	const struct model_tensor *t = &model_whole(m)->tensor[tensor];
	size_t width = t->columns ? t->columns : 1;
	struct slice_walk w = { .rows = 1, .stride = t->rows * width, .blocks = 1 };

	w.size[0] = w.stride;
	if (m->whole && is_cut(t->row_extent)) {
		cut(&w, m, t->row_extent, width);
	} else if (m->whole && is_cut(t->column_extent)) {
		w.rows = t->rows;
		w.stride = width;
		cut(&w, m, t->column_extent, 1);
	}
	return w;
}

bool slice_next(struct slice_walk *w, struct slice_run *run)
{
	if (w->row == w->rows)
		return false;
	*run = (struct slice_run){ w->row * w->stride + w->first[w->block], w->local,
				   w->size[w->block] };
	w->local += run->count;
	if (++w->block == w->blocks) {
		w->block = 0;
		w->row++;
	}
	return true;
}

bool slice_is_whole(const struct model *m, size_t at, size_t *count)
{
	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &m->tensor[i];
		size_t end = t->offset + t->rows * (t->columns ? t->columns : 1);
		if (at < t->offset || at >= end)
			continue;
		*count = end - at < *count ? end - at : *count;
		return !is_cut(t->row_extent) && !is_cut(t->column_extent);
	}
	return false;
}
