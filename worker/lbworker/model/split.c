/* SPDX-License-Identifier: MIT */
/* split.c - gathers and sums of activations between ranks that hold a model together. */
#include "worker/lbworker/model/split.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum { DEGREE_MAX = COMM_RANKS_MAX };

static size_t bound(const struct model_split *split, int rank, size_t rows)
{
	return rows * (size_t)rank / (size_t)split->degree;
}

static const struct model_split *split_of(const struct model *m)
{
	return &m->options.split;
}

size_t split_rows(const struct model *m, size_t rows)
{
	const struct model_split *split = split_of(m);

	if (!m->whole || !split->sequence)
		return rows;
	return bound(split, split->rank + 1, rows) - bound(split, split->rank, rows);
}

size_t split_most_rows(const struct model_split *split, size_t rows)
{
	return (rows + (size_t)split->degree - 1) / (size_t)split->degree;
}

static void exchange(const struct model *m, const struct comm_part *send,
		     const struct comm_part *receive)
{
	m->peers.exchange(m->peers.arg, send, receive);
}

/* Rows of rank r of an activation. */
static struct comm_part rows_of(const struct model *m, void *x, int r, size_t rows, size_t width)
{
	size_t from = bound(split_of(m), r, rows), to = bound(split_of(m), r + 1, rows);
	size_t row_bytes = width * compute_bytes(m->options.compute);

	return (struct comm_part){ (char *)x + from * row_bytes, (to - from) * row_bytes };
}

/* Each rank's rows lie in their place. */
static void gather_in_place(const struct model *m, void *x, size_t rows, size_t width)
{
	const struct model_split *split = split_of(m);
	struct comm_part send[DEGREE_MAX], receive[DEGREE_MAX];

	for (int r = 0; r < split->degree; r++) {
		send[r] = rows_of(m, x, split->rank, rows, width);
		receive[r] = rows_of(m, x, r, rows, width);
	}
	exchange(m, send, receive);
}

const void *split_gather(const struct model *m, void *whole, const void *x, size_t rows,
			 size_t width)
{
	if (!m->whole || !split_of(m)->sequence)
		return x;
	const struct comm_part own = rows_of(m, whole, split_of(m)->rank, rows, width);
	m->backend->copy(m->device, own.at, x, own.bytes);
	gather_in_place(m, whole, rows, width);
	return whole;
}

void split_reduce(const struct model *m, const struct layer_shared *s, void *out, void *part,
		  size_t rows, size_t width)
{
	const struct model_split *split = split_of(m);
	struct comm_part send[DEGREE_MAX], receive[DEGREE_MAX], own;

	if (!m->whole)
		return;
	own = rows_of(m, part, split->rank, rows, width);
	for (int r = 0; r < split->degree; r++) {
		send[r] = rows_of(m, part, r, rows, width);
		receive[r] = (struct comm_part){ (char *)s->inbox + (size_t)r * own.bytes,
						 own.bytes };
	}
	exchange(m, send, receive); /* our own part is copied, too */
	for (int r = 1; r < split->degree; r++)
		m->backend->add(m->device, s->inbox, receive[r].at, own.bytes / sizeof(float));
	if (split->sequence) {
		m->backend->copy(m->device, out, s->inbox, own.bytes);
		return;
	}
	m->backend->copy(m->device, rows_of(m, out, split->rank, rows, width).at, s->inbox,
			 own.bytes);
	gather_in_place(m, out, rows, width);
}

void split_loss(const struct model *m, const struct layer_shared *s, float *loss, void *logits,
		const int32_t *targets, size_t rows, float scale)
{
	const struct model_split *split = split_of(m);
	const struct vocab_slice slice = slice_vocab(m);
	struct comm_part send[DEGREE_MAX], receive[DEGREE_MAX];
	struct loss_part *part = s->inbox;
	size_t bytes = rows * sizeof(*part);

	if (!m->whole) {
		m->backend->cross_entropy(m->device, loss, logits, targets, rows, m->shape.vocab,
					  scale);
		return;
	}
	m->backend->loss_part(m->device, part + (size_t)split->rank * rows, logits, targets, rows,
			      &slice);
	for (int r = 0; r < split->degree; r++) {
		send[r] = (struct comm_part){ part + (size_t)split->rank * rows, bytes };
		receive[r] = (struct comm_part){ part + (size_t)r * rows, bytes };
	}
	exchange(m, send, receive);
	m->backend->loss_merge(m->device, loss, logits, targets, part, rows, &slice, scale);
}

/* --- norms ------------------------------------------------------------------------------------ */

/* Between their places and one array; their number. */
static size_t pack_norms(const struct model *m, float *array, bool back)
{
	static const enum param norms[] = { PARAM_NORM1,      PARAM_NORM1_BIAS,
					    PARAM_NORM2,      PARAM_NORM2_BIAS,
					    PARAM_FINAL_NORM, PARAM_FINAL_NORM_BIAS };
	size_t count = 0, dim = m->shape.dim;

	for (size_t l = 0; l <= m->shape.layers; l++)
		for (size_t i = 0; i < sizeof(norms) / sizeof(norms[0]); i++) {
			size_t at = m->layer[l].at[norms[i]];
			if (at == ABSENT)
				continue;
			float *grad = m->grads + at, *packed = array + count;
			if (array)
				m->backend->copy(m->device, back ? grad : packed,
						 back ? packed : grad, dim * sizeof(float));
			count += dim;
		}
	return count;
}

void model_sum_norms(const struct model *m)
{
	const struct model_split *split = split_of(m);
	struct comm_part send[DEGREE_MAX], receive[DEGREE_MAX];

	if (!m->whole || !split->sequence)
		return;
	size_t count = pack_norms(m, NULL, false);
	float *all = xcalloc((size_t)split->degree * count, sizeof(*all));
	float *own = all + (size_t)split->rank * count;
	pack_norms(m, own, false);
	for (int r = 0; r < split->degree; r++) {
		send[r] = (struct comm_part){ own, count * sizeof(*all) };
		receive[r] = (struct comm_part){ all + (size_t)r * count, count * sizeof(*all) };
	}
	exchange(m, send, receive);
	for (int r = 1; r < split->degree; r++)
		m->backend->add(m->device, all, all + (size_t)r * count, count);
	pack_norms(m, all, true);
	free(all);
}
