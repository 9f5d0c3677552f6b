/* SPDX-License-Identifier: MIT */
/* foreign.c - which tensor of others is which of ours, and in what order its rows stand. */
#include "worker/lbworker/torch/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/torch/foreign_parts.h"
#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/torch_file.h"

static const struct foreign_layout layouts[] = {
	{ "meta", "consolidated.00.pth", "params.json", NAMES_META, "layers.", meta_read,
	  meta_write },
	{ "litgpt", "lit_model.pth", "model_config.yaml", NAMES_LITGPT, "transformer.h.",
	  litgpt_read, litgpt_write },
	{ "torch", "pytorch_model.bin", "config.json", NAMES_OURS, "model.layers.", hf_read,
	  hf_write },
	{ "dcp", ".metadata", "params.json", NAMES_META, "layers.", dcp_shape, meta_write },
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* Behind the layer's prefix, where there is one. */
static const struct names {
	const char *name[NAMES_COUNT];
	bool turns; /* its heads, by position */
} names[] = {
	{ { "model.embed_tokens.weight", "tok_embeddings.weight", "transformer.wte.weight" },
	  false },
	{ { "self_attn.q_proj.weight", "attention.wq.weight", "attn.qkv.weight" }, true },
	{ { "self_attn.k_proj.weight", "attention.wk.weight", "attn.qkv.weight" }, true },
	{ { "self_attn.v_proj.weight", "attention.wv.weight", "attn.qkv.weight" }, false },
	{ { "self_attn.o_proj.weight", "attention.wo.weight", "attn.proj.weight" }, false },
	{ { "mlp.gate_proj.weight", "feed_forward.w1.weight", "mlp.fc_1.weight" }, false },
	{ { "mlp.up_proj.weight", "feed_forward.w3.weight", "mlp.fc_2.weight" }, false },
	{ { "mlp.down_proj.weight", "feed_forward.w2.weight", "mlp.proj.weight" }, false },
	{ { "input_layernorm.weight", "attention_norm.weight", "norm_1.weight" }, false },
	{ { "post_attention_layernorm.weight", "ffn_norm.weight", "norm_2.weight" }, false },
	{ { "model.norm.weight", "norm.weight", "transformer.ln_f.weight" }, false },
	{ { "lm_head.weight", "output.weight", "lm_head.weight" }, false },
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* Where a tensor of ours stands in theirs. */
struct place {
	char name[96];
	size_t first, rows; /* of the whole tensor; it has more rows than ours where `first` > 0 */
	size_t head_dim;    /* its heads' rows stand in pairs; 0: as ours do */
};

struct foreign {
	const struct foreign_layout *layout;
	struct tensors *tensors;
	struct model_shape shape;
	struct place at; /* of the tensor that was selected */
};

const struct foreign_layout *foreign_named(const char *name)
{
	for (size_t i = 0; i < LAYOUTS; i++)
		if (strcmp(layouts[i].name, name) == 0)
			return &layouts[i];
	return NULL;
}

const struct foreign_layout *foreign_in(const char *folder)
{
	for (size_t i = 0; i < LAYOUTS; i++) {
		char *path = path_join("%s/%s", folder, layouts[i].weights);
		bool there = file_exists(path);
		free(path);
		if (there)
			return &layouts[i];
	}
	return NULL;
}

/* --- places --------------------------------------------------------------------------------- */

static void find_place(const struct foreign_layout *layout, const struct model_shape *s,
		       const struct model_tensor *t, struct place *out)
{
	static const char ours[] = "model.layers.";
	const size_t head_dim = s->head_dim ? s->head_dim : s->dim / s->heads;
	const char *behind = t->name, *number = NULL;
	size_t digits = 0, i = 0;

	*out = (struct place){ .rows = t->rows };
	if (layout->names == NAMES_OURS) {
		snprintf(out->name, sizeof(out->name), "%s", t->name);
		return;
	}
	if (strncmp(t->name, ours, sizeof(ours) - 1) == 0) {
		number = t->name + sizeof(ours) - 1;
		digits = strspn(number, "0123456789") + 1; /* and the dot */
		behind = number + digits;
	}
	while (i + 1 < NAMES && strcmp(names[i].name[NAMES_OURS], behind) != 0)
		i++;
	snprintf(out->name, sizeof(out->name), "%s%.*s%s", number ? layout->prefix : "",
		 (int)digits, number ? number : "", names[i].name[layout->names]);
	if (layout->names == NAMES_META && names[i].turns)
		out->head_dim = head_dim;
	if (layout->names == NAMES_LITGPT &&
	    strcmp(names[i].name[NAMES_LITGPT], "attn.qkv.weight") == 0) {
		size_t query = s->heads * head_dim, key = s->kv_heads * head_dim;
		out->rows = query + 2 * key;
		out->first = behind[10] == 'q' ? 0 : behind[10] == 'k' ? query : query + key;
	}
}

/* Row `row` of ours in a tensor of pairs: 2i and 2i + 1 there are i and i + C/2 here. */
static size_t paired(size_t head_dim, size_t row)
{
	size_t in = row % head_dim, half = head_dim / 2;

	return row - in + in % half * 2 + in / half;
}

/* --- reading -------------------------------------------------------------------------------- */

struct foreign *foreign_open(const struct foreign_layout *layout, const char *folder,
			     struct model_shape *shape, size_t *positions, struct err *err)
{
	struct foreign *f = xcalloc(1, sizeof(*f));

	const char *table = names[0].name[layout->names];

	f->layout = layout;
	f->tensors = tensors_open(folder, layout->weights, err);
	if (f->tensors && layout->names != NAMES_OURS && tensors_rows(f->tensors, table) == 0)
		err_set(err, ERR_USAGE, "%s/%s: there is no tensor %s", folder, layout->weights,
			table);
	else if (f->tensors && layout->read(shape, positions, folder, f->tensors, err) == 0) {
		f->shape = *shape;
		return f;
	}
	foreign_close(f);
	return NULL;
}

void foreign_close(struct foreign *f)
{
	if (!f)
		return;
	tensors_close(f->tensors);
	free(f);
}

int foreign_select(struct foreign *f, const struct model_tensor *t, struct err *err)
{
	find_place(f->layout, &f->shape, t, &f->at);
	return tensors_select(f->tensors, f->at.name, f->at.rows, t->columns, err);
}

int foreign_select_moment(struct foreign *f, const struct model_tensor *t, const char *moment,
			  struct err *err)
{
	char name[160];

	find_place(f->layout, &f->shape, t, &f->at);
	snprintf(name, sizeof(name), "optimizer.state.%s.%s", f->at.name, moment);
	return tensors_select(f->tensors, name, f->at.rows, t->columns, err);
}

int foreign_steps(const struct foreign *f, int64_t *steps, struct err *err)
{
	char name[160];
	float number;

	snprintf(name, sizeof(name), "optimizer.state.%s.step", names[0].name[f->layout->names]);
	if (tensors_number(f->tensors, name, &number, err))
		return -1;
	if (!(number >= 0 && number < 1e9f))
		return err_set(err, ERR_USAGE, "%s: %g is no number of steps", name,
			       (double)number);
	*steps = (int64_t)number;
	return 0;
}

void foreign_row(const struct foreign *f, size_t row, float *to)
{
	tensors_row(f->tensors, f->at.first + (f->at.head_dim ? paired(f->at.head_dim, row) : row),
		    to);
}

/* --- the way back --------------------------------------------------------------------------- */

struct st_tensor *foreign_list(const struct foreign_layout *layout, const struct model *m,
			       enum st_type type, size_t *count)
{
	enum { NAME_BYTES = 96 };
	size_t most = m->tensors + 1;
	struct st_tensor *list = xcalloc(1, most * (sizeof(*list) + NAME_BYTES));
	char *room = (char *)(list + most);
	const struct model_tensor head = { .name = "lm_head.weight",
					   .rows = m->shape.vocab,
					   .columns = m->shape.dim };

	*count = 0;
	for (size_t i = 0; i < m->tensors + m->shape.tied; i++) {
		struct place at;
		const struct model_tensor *t = i < m->tensors ? &m->tensor[i] : &head;
		find_place(layout, &m->shape, t, &at);
		if (at.first > 0)
			continue;
		list[*count] = (struct st_tensor){ .name = memcpy(room, at.name, NAME_BYTES),
						   .type = type,
						   .dimensions = t->columns ? 2 : 1,
						   .shape = { at.rows, t->columns } };
		room += NAME_BYTES;
		++*count;
	}
	return list;
}

size_t foreign_order(const struct foreign_layout *layout, const struct model *m,
		     const struct model_tensor *t, size_t row)
{
	struct place at;

	find_place(layout, &m->shape, t, &at);
	if (!at.head_dim)
		return row;
	size_t in = row % at.head_dim; /* the inverse of paired() */
	return row - in + in / 2 + in % 2 * (at.head_dim / 2);
}

/* What those formats have names for: Llama, and Mistral where that is the same. */
static int check_llama(const struct model_shape *s, struct err *err)
{
	bool is_linear = s->scaling.factor > 0 && s->scaling.original == 0;

	if (is_linear || s->window > 0 || (s->family != MODEL_LLAMA && s->family != MODEL_MISTRAL))
		return err_set(err, ERR_USAGE,
			       "this layout is for llama, without a window or linear scaling, and "
			       "not for this %s: --to huggingface or torch",
			       model_family_name(s->family));
	return 0;
}

int foreign_write_config(const struct foreign_layout *layout, const struct model_shape *shape,
			 size_t positions, const char *dtype, const char *folder, struct err *err)
{
	if (layout->names != NAMES_OURS && check_llama(shape, err))
		return -1;
	char *path = path_join("%s/%s", folder, layout->config);
	int rc = layout->write(shape, positions, dtype, path, err);

	free(path);
	return rc;
}

struct foreign_writer {
	struct torch_writer *torch; /* or */
	struct dcp_writer *dcp;
};

struct foreign_writer *foreign_begin(const struct foreign_layout *layout, const char *folder,
				     const struct st_tensor *list, size_t count, struct err *err)
{
	struct foreign_writer *w = xcalloc(1, sizeof(*w));
	char *path = path_join("%s/%s", folder, layout->weights);

	if (layout->read == dcp_shape)
		w->dcp = dcp_begin(folder, list, count, err);
	else
		w->torch = torch_begin(path, list, count, err);
	free(path);
	if (w->dcp || w->torch)
		return w;
	free(w);
	return NULL;
}

int foreign_append(struct foreign_writer *w, const void *data, size_t bytes, struct err *err)
{
	return w->dcp ? dcp_append(w->dcp, data, bytes, err)
		      : torch_append(w->torch, data, bytes, err);
}

int foreign_end(struct foreign_writer *w, struct err *err)
{
	if (!w)
		return 0;
	int rc = w->dcp ? dcp_end(w->dcp, err) : torch_end(w->torch, err);
	free(w);
	return rc;
}
