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
#include "common/base/text.h"
#include "worker/lbworker/families/family.h"
#include "worker/lbworker/families/hf_config.h"
#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/foreign_parts.h"
#include "worker/lbworker/torch/torch_file.h"

static const struct foreign_layout layouts[] = {
	{ "meta", "consolidated.00.pth", "params.json", NAMES_META, "layers.", meta_read,
	  meta_write },
	{ "litgpt", "lit_model.pth", "model_config.yaml", NAMES_LITGPT, "transformer.h.",
	  litgpt_read, litgpt_write },
	{ "torch", "pytorch_model.bin", "config.json", NAMES_OURS, "model.layers.", hf_read,
	  hf_write },
	{ "dcp", ".metadata", "params.json", NAMES_META, "layers.", dcp_shape, meta_write },
	/* the same, by the names of torchtitan from 0.3 on */
	{ "torchtitan", ".metadata", "params.json", NAMES_TITAN, "layers.", dcp_shape, meta_write },
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* Behind the layer's prefix, where there is one. */
static const struct names {
	const char *name[NAMES_COUNT];
	bool turns;                                  /* its heads, by position */
	enum { CUT_NOT, CUT_ROWS, CUT_COLUMNS } cut; /* how Meta's parts share it: Llama 3's way */
} names[] = {
	{ { "model.embed_tokens.weight", "tok_embeddings.weight", "transformer.wte.weight",
	    "tok_embeddings.weight" },
	  false,
	  CUT_ROWS },
	{ { "self_attn.q_proj.weight", "attention.wq.weight", "attn.qkv.weight",
	    "attention.qkv_linear.wq.weight" },
	  true,
	  CUT_ROWS },
	{ { "self_attn.k_proj.weight", "attention.wk.weight", "attn.qkv.weight",
	    "attention.qkv_linear.wk.weight" },
	  true,
	  CUT_ROWS },
	{ { "self_attn.v_proj.weight", "attention.wv.weight", "attn.qkv.weight",
	    "attention.qkv_linear.wv.weight" },
	  false,
	  CUT_ROWS },
	{ { "self_attn.o_proj.weight", "attention.wo.weight", "attn.proj.weight",
	    "attention.wo.weight" },
	  false,
	  CUT_COLUMNS },
	{ { "mlp.gate_proj.weight", "feed_forward.w1.weight", "mlp.fc_1.weight",
	    "feed_forward.w1.weight" },
	  false,
	  CUT_ROWS },
	{ { "mlp.up_proj.weight", "feed_forward.w3.weight", "mlp.fc_2.weight",
	    "feed_forward.w3.weight" },
	  false,
	  CUT_ROWS },
	{ { "mlp.down_proj.weight", "feed_forward.w2.weight", "mlp.proj.weight",
	    "feed_forward.w2.weight" },
	  false,
	  CUT_COLUMNS },
	{ { "input_layernorm.weight", "attention_norm.weight", "norm_1.weight",
	    "attention_norm.weight" },
	  false,
	  CUT_NOT },
	{ { "post_attention_layernorm.weight", "ffn_norm.weight", "norm_2.weight",
	    "ffn_norm.weight" },
	  false,
	  CUT_NOT },
	{ { "model.norm.weight", "norm.weight", "transformer.ln_f.weight", "norm.weight" },
	  false,
	  CUT_NOT },
	{ { "lm_head.weight", "output.weight", "lm_head.weight", "lm_head.weight" },
	  false,
	  CUT_ROWS },
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

enum { NAME_BYTES = 128 };

/* Where a tensor of ours stands in theirs. */
struct place {
	char name[96];
	int cut;
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

/* Published models have the same weights in several layouts side by side. */
const struct foreign_layout *foreign_in(const char *folder)
{
	if (folder_holds(folder, "config.json") &&
	    (folder_holds(folder, "model.safetensors") ||
	     folder_holds(folder, "model.safetensors.index.json")))
		return NULL;
	for (size_t i = 0; i < LAYOUTS; i++) {
		char *index = xasprintf("%s" TENSORS_INDEX, layouts[i].weights);
		bool there = folder_holds(folder, layouts[i].weights) ||
			     folder_holds(folder, index);
		free(index);
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
		digits = text_digits(number) + 1; /* and the dot */
		behind = number + digits;
	}
	while (i + 1 < NAMES && strcmp(names[i].name[NAMES_OURS], behind) != 0)
		i++;
	snprintf(out->name, sizeof(out->name), "%s%.*s%s", number ? layout->prefix : "",
		 (int)digits, number ? number : "", names[i].name[layout->names]);
	out->cut = names[i].cut;
	if ((layout->names == NAMES_META || layout->names == NAMES_TITAN) && names[i].turns)
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

static int check_head(const struct foreign *f, const struct model_shape *s, const char *folder,
		      struct err *err)
{
	const char *table = family_table(family_of(s->family));
	const char *head = family_head(family_of(s->family));

	if (!s->tied || tensors_rows(f->tensors, head, 0) == 0 ||
	    tensors_same(f->tensors, table, head))
		return 0;
	return hf_config_refuse_head(folder, s->family, err);
}

/* The shape says what the table is called (Hugging Face), or is read off the tensors (others). */
static int read_shape(struct foreign *f, struct model_shape *shape, size_t *positions,
		      const char *folder, struct err *err)
{
	const struct foreign_layout *layout = f->layout;
	const char *table = names[0].name[layout->names];

	if (layout->names == NAMES_OURS) {
		if (layout->read(shape, positions, folder, f->tensors, err) ||
		    tensors_find_prefix(f->tensors, family_table(family_of(shape->family)), err))
			return -1;
		return check_head(f, shape, folder, err);
	}
	if (tensors_find_prefix(f->tensors, table, err))
		return -1;
	if (tensors_rows(f->tensors, table, 0) == 0)
		return err_set(err, ERR_USAGE, "%s/%s: there is no tensor %s", folder,
			       layout->weights, table);
	return layout->read(shape, positions, folder, f->tensors, err);
}

struct foreign *foreign_open(const struct foreign_layout *layout, const char *folder,
			     struct model_shape *shape, size_t *positions, struct err *err)
{
	struct foreign *f = xcalloc(1, sizeof(*f));

	f->tensors = tensors_open(folder, layout->weights, err);
	if (f->tensors && layout->read == dcp_shape &&
	    tensors_rows(f->tensors, "layers.0.attention.qkv_linear.wq.weight", 0) > 0)
		layout = foreign_named("torchtitan");
	f->layout = layout;
	if (f->tensors && read_shape(f, shape, positions, folder, err) == 0) {
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

/* A list that grows, with room behind it for its names. */
struct listing {
	struct st_tensor *list;
	size_t count;
	char *room;
};

static struct st_tensor *add(struct listing *l, const char *prefix, const char *name,
			     const char *behind)
{
	struct st_tensor *t = &l->list[l->count++];

	snprintf(l->room, NAME_BYTES, "%s%s%s", prefix, name, behind);
	*t = (struct st_tensor){ .name = l->room };
	l->room += NAME_BYTES;
	return t;
}

/* Behind `weights` tensors their moments, in the order in which convert has them. */
static void add_moments(struct listing *l, size_t weights)
{
	static const char *const moments[] = { ".exp_avg", ".exp_avg_sq", ".step" };

	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < weights; i++) {
			const struct st_tensor *of = &l->list[i];
			struct st_tensor *t = add(l, "optimizer.state.", of->name, moments[k]);
			t->type = k == 2 ? ST_F32 : of->type;
			t->dimensions = k == 2 ? 0 : of->dimensions;
			memcpy(t->shape, of->shape, sizeof(t->shape));
		}
}

static const struct model_tensor *tensor_or_head(const struct model *m, size_t i,
						 struct model_tensor *head)
{
	*head = (struct model_tensor){ .name = "lm_head.weight",
				       .rows = m->shape.vocab,
				       .columns = m->shape.dim };
	return i < m->tensors ? &m->tensor[i] : head;
}

struct st_tensor *foreign_list(const struct foreign_layout *layout, const struct model *m,
			       const struct foreign_want *want, size_t *count)
{
	size_t most = (m->tensors + 1) * (want->moments ? 4 : 1);
	struct listing l = { .list = xcalloc(1, most * (sizeof(*l.list) + NAME_BYTES)) };

	l.room = (char *)(l.list + most);
	for (size_t i = 0; i < m->tensors + m->shape.tied; i++) {
		struct place at;
		struct model_tensor head;
		const struct model_tensor *t = tensor_or_head(m, i, &head);
		find_place(layout, &m->shape, t, &at);
		if (at.first > 0)
			continue;
		struct foreign_piece piece = foreign_piece(layout, m, t, want);
		struct st_tensor *to = add(&l, "", at.name, "");
		to->type = want->type;
		to->dimensions = t->columns ? 2 : 1;
		to->shape[0] = t->columns && piece.rows < t->rows ? piece.rows : at.rows;
		to->shape[1] = t->columns ? piece.columns : 0;
	}
	if (want->moments)
		add_moments(&l, l.count);
	*count = l.count;
	return l.list;
}

struct foreign_piece foreign_piece(const struct foreign_layout *layout, const struct model *m,
				   const struct model_tensor *t, const struct foreign_want *want)
{
	struct foreign_piece p = { 0, t->columns ? t->rows : 1, 0,
				   t->columns ? t->columns : t->rows };
	struct place at;

	find_place(layout, &m->shape, t, &at);
	if (want->parts > 1 && at.cut == CUT_ROWS) {
		p.rows /= want->parts;
		p.row = want->part * p.rows;
	} else if (want->parts > 1 && at.cut == CUT_COLUMNS) {
		p.columns /= want->parts;
		p.column = want->part * p.columns;
	}
	return p;
}

bool foreign_has_moments(const struct foreign_layout *layout)
{
	return layout->read == dcp_shape;
}

int foreign_check_parts(const struct foreign_layout *layout, const struct model_shape *s,
			size_t parts, struct err *err)
{
	if (parts <= 1)
		return 0;
	if (!layout || layout->read != meta_read)
		return err_set(err, ERR_USAGE, "--parts is for --to meta");
	if (parts <= FOREIGN_PARTS_MAX && s->kv_heads % parts == 0 && s->heads % parts == 0 &&
	    s->ffn % parts == 0 && s->vocab % parts == 0)
		return 0;
	return err_set(
		err, ERR_USAGE,
		"--parts %zu must divide heads (%zu), key/value heads (%zu), feed-forward (%zu) "
		"and vocabulary (%zu), and be at most %d",
		parts, s->heads, s->kv_heads, s->ffn, s->vocab, FOREIGN_PARTS_MAX);
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

/* consolidated.NN.pth */
static char *part_path(const struct foreign_layout *layout, const char *folder, size_t part)
{
	const char *number = part > 0 ? strstr(layout->weights, ".00.") : NULL;

	if (!number)
		return path_join("%s/%s", folder, layout->weights);
	return path_join("%s/%.*s.%02zu.%s", folder, (int)(number - layout->weights),
			 layout->weights, part, number + strlen(".00."));
}

struct foreign_writer *foreign_begin(const struct foreign_layout *layout, const char *folder,
				     size_t part, const struct st_tensor *list, size_t count,
				     struct err *err)
{
	struct foreign_writer *w = xcalloc(1, sizeof(*w));
	char *path = part_path(layout, folder, part);

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

int foreign_put_settings(struct foreign_writer *w, const struct st_tensor *list, size_t count,
			 const struct foreign_settings *s, struct err *err)
{
	return w->dcp ? settings_put(w->dcp, list, count, s, err)
		      : err_set(err, ERR_INTERNAL, "settings beside weights alone");
}

int foreign_end(struct foreign_writer *w, struct err *err)
{
	if (!w)
		return 0;
	int rc = w->dcp ? dcp_end(w->dcp, err) : torch_end(w->torch, err);
	free(w);
	return rc;
}
