/* SPDX-License-Identifier: MIT */
/* activations.c - one block of memory for a micro-batch, laid out by what the model's layers keep.
 *
 * What layers do not keep is one buffer for all of them, filled again when backward comes by. Also
 * the tables of angles, which are written once. */
#include "worker/lbworker/model/activations.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/context.h"
#include "worker/lbworker/model/split.h"

/* Logits held at a time; a GPU needs more of them to be busy, in whole tiles of rows. */
enum { HEAD_CHUNK = 32 << 20, HEAD_CHUNK_BF16 = 128 << 20, HEAD_TILE = 128 };

/* --- the arena: one walk counts, a second one hands out addresses ---------------------------- */

struct arena {
	char *base; /* NULL while counting */
	size_t bytes;
	size_t activation_bytes; /* one element of an activation */
};

static void *reserve_bytes(struct arena *arena, size_t bytes)
{
	const size_t align = 256;
	char *at = arena->base ? arena->base + arena->bytes : NULL;
	arena->bytes += (bytes + align - 1) / align * align;
	return at;
}

/* An activation, in the type the device computes in. */
static void *reserve(struct arena *arena, size_t count)
{
	return reserve_bytes(arena, count * arena->activation_bytes);
}

/* fp32, or anything else of four bytes. */
static void *reserve_words(struct arena *arena, size_t count)
{
	return reserve_bytes(arena, count * sizeof(float));
}

static void lay_out_norm(struct arena *p, const struct model *m, struct norm_kept *n)
{
	size_t rows = split_rows(m, m->batch * m->seq);

	n->rstd = reserve_words(p, rows);
	if (m->family->layer_norm)
		n->mean = reserve_words(p, rows);
}

/* `ffn` wide where all tokens see it; and of experts, where the layer has them. */
static void lay_out_ffn(struct arena *p, const struct model *m, struct layer_kept *k,
			unsigned parts, size_t ffn, bool is_sparse)
{
	size_t rows = m->batch * m->seq, places = model_places(m), width = m->shape.experts.ffn;

	if (parts & AGAIN_UP)
		k->up = reserve(p, rows * ffn * (m->family->gated ? 2 : 1));
	if (parts & AGAIN_HIDDEN)
		k->hidden = reserve(p, rows * ffn);
	if ((parts & AGAIN_UP) && is_sparse)
		k->experts.up = reserve(p, places * 2 * width);
	if ((parts & AGAIN_HIDDEN) && is_sparse)
		k->experts.hidden = reserve(p, places * width);
}

/* The parts of a layer that are named by AGAIN_ bits, but those of its feed-forward. */
static void lay_out_parts(struct arena *p, const struct model *m, struct layer_kept *k,
			  unsigned parts)
{
	const struct model_shape *s = &m->shape;
	size_t rows = m->batch * m->seq, here = split_rows(m, rows);

	if ((parts & AGAIN_NORMED) && layer_has(m, 0, PARAM_NORM1)) {
		k->attention_in = reserve(p, here * s->dim);
		k->ffn_in = reserve(p, here * s->dim);
	}
	if (parts & AGAIN_QKV) {
		k->qkv = reserve(p, rows * model_qkv_width(s));
		if (layer_has(m, 0, PARAM_QUERY_NORM))
			k->raw = reserve(p, rows * model_qkv_width(s));
	}
	if (parts & AGAIN_ATTENDED) {
		k->attended = reserve(p, rows * model_attended_width(s));
		k->lse = reserve_words(p, rows * s->heads);
	}
	if ((parts & AGAIN_MIDDLE) && !m->family->parallel) {
		k->middle = reserve(p, here * s->dim);
		if (layer_has(m, 0, PARAM_POST1))
			k->post1_in = reserve(p, here * s->dim);
	}
}

/* Which rows went where. */
static void lay_out_routing(struct arena *p, const struct model *m, struct experts_kept *k)
{
	size_t experts = m->shape.experts.count, places = model_places(m);

	k->scores = reserve_words(p, m->batch * m->seq * experts);
	k->weight = reserve_words(p, places);
	k->expert = reserve_words(p, places);
	k->place = reserve_words(p, places);
	k->choice = reserve_words(p, places);
	k->begin = reserve_words(p, experts + 1);
}

/* What is always kept. */
static void lay_out_rest(struct arena *p, const struct model *m, struct layer_kept *k)
{
	size_t rows = m->batch * m->seq;

	k->x = reserve(p, split_rows(m, rows) * m->shape.dim);
	lay_out_norm(p, m, &k->norm1);
	lay_out_norm(p, m, &k->norm2);
	if (layer_has(m, 0, PARAM_QUERY_NORM))
		k->qk_rstd = reserve_words(p, rows * (m->shape.heads + m->shape.kv_heads));
	if (layer_has(m, 0, PARAM_POST1)) {
		lay_out_norm(p, m, &k->post1);
		lay_out_norm(p, m, &k->post2);
		k->post2_in = reserve(p, rows * m->shape.dim);
	}
}

static void lay_out_layers(struct arena *p, const struct model *m, struct model_activations *a)
{
	for (size_t l = model_first_layer(m); l < model_end_layer(m); l++) {
		struct layer_kept k = a->common;
		unsigned parts = AGAIN_ALL & ~layer_lacks(m, l);
		bool is_sparse = model_is_sparse(&m->shape, l);
		lay_out_rest(p, m, &k);
		lay_out_parts(p, m, &k, parts);
		lay_out_ffn(p, m, &k, parts, model_ffn_width(&m->shape, l), is_sparse);
		if (is_sparse)
			lay_out_routing(p, m, &k.experts);
		if (!layer_has(m, l, PARAM_NORM1)) {
			k.attention_in = k.x;
			k.ffn_in = k.middle;
		}
		a->layer[l] = k;
	}
}

/* What split.c works in. */
static void lay_out_split(struct arena *p, const struct model *m, struct model_activations *a)
{
	const struct model_split *split = &m->options.split;
	size_t rows = m->batch * m->seq, width = m->shape.dim, parts;

	if (!m->whole)
		return;
	if (split->sequence) {
		a->shared.gathered = reserve(p, rows * width);
		a->shared.dgathered = reserve(p, rows * width);
	}
	parts = split_most_rows(split, rows) * width * sizeof(float);
	if (parts < a->chunk_rows * sizeof(struct loss_part))
		parts = a->chunk_rows * sizeof(struct loss_part);
	a->shared.inbox = reserve_bytes(p, (size_t)split->degree * parts);
}

static bool has_local_rope(const struct model *m)
{
	return m->shape.window > 0 && m->shape.local_theta > 0;
}

/* What context.c works in. */
static void lay_out_context(struct arena *p, const struct model *m, struct layer_shared *a)
{
	const struct model_shape *s = &m->shape;
	size_t rows = m->batch * m->options.seq, keys = 2 * s->kv_heads * model_head_dim(s);

	if (!context_is_shared(m))
		return;
	a->whole_qkv = reserve(p, rows * model_qkv_width(s));
	a->whole_dqkv = reserve(p, rows * model_qkv_width(s));
	a->whole_attended = reserve(p, rows * model_attended_width(s));
	a->whole_dattended = reserve(p, rows * model_attended_width(s));
	a->whole_lse = reserve_words(p, rows * s->heads);
	a->keys[0] = reserve(p, rows * keys);
	a->keys[1] = reserve(p, rows * keys);
}

/* What one micro-batch keeps from its forward to its backward. */
static void lay_out_own(struct arena *p, const struct model *m, struct model_activations *a)
{
	size_t rows = m->batch * m->seq;

	lay_out_layers(p, m, a);
	if (m->options.mask_documents)
		a->shared.begin = reserve_words(p, m->batch * m->options.seq);
	a->last = reserve(p, split_rows(m, rows) * m->shape.dim);
	lay_out_norm(p, m, &a->final_norm);
	a->tokens = reserve_words(p, rows);
	a->targets = reserve_words(p, rows);
}

/* What experts.c works in. */
static void lay_out_experts(struct arena *p, const struct model *m, struct experts_shared *s)
{
	const struct model_experts *e = &m->shape.experts;
	size_t places = model_places(m);

	if (e->count == 0)
		return;
	s->logits = reserve_words(p, m->batch * m->seq * e->count);
	s->dweight = reserve_words(p, places);
	s->push = m->options.expert_loss > 0 ? reserve_words(p, e->count) : NULL;
	s->routed = reserve(p, places * m->shape.dim);
	s->drouted = reserve(p, places * m->shape.dim);
	s->dhidden = reserve(p, places * e->ffn);
}

/* What one micro-batch at a time works in. Layers that do not keep a part share one buffer for it;
 * the first layer lacks the most. */
static void lay_out_shared(struct arena *p, const struct model *m, struct model_activations *a)
{
	const struct model_shape *s = &m->shape;
	size_t rows = m->batch * m->seq;

	lay_out_parts(p, m, &a->common, layer_lacks(m, 0));
	lay_out_ffn(p, m, &a->common, layer_lacks(m, 0), model_widest_ffn(s), s->experts.count > 0);
	lay_out_experts(p, m, &a->shared.experts);
	if (!m->family->learned_positions)
		a->shared.rope = reserve_words(p, m->seq * model_turned(s));
	a->shared.local_rope = has_local_rope(m) ? reserve_words(p, m->seq * model_turned(s))
						 : a->shared.rope;
	a->final = reserve(p, split_rows(m, rows) * s->dim);
	if (model_is_last_stage(m))
		a->logits = reserve(p, a->chunk_rows * s->vocab);
	a->loss = reserve_words(p, rows);
	a->shared.delta = reserve(p, rows * s->dim);
	a->shared.dx = reserve(p, split_rows(m, rows) * s->dim);
	a->shared.dnormed = reserve(p, rows * s->dim);
	a->shared.dattended = reserve(p, rows * model_attended_width(s));
	a->shared.dqkv = reserve(p, rows * model_qkv_width(s));
	a->shared.dhidden = reserve(p, rows * model_widest_ffn(s));
	a->loss_sum = reserve_bytes(p, sizeof(double));
	lay_out_split(p, m, a);
	lay_out_context(p, m, &a->shared);
}

static size_t head_chunk(const struct model *m)
{
	bool bf16 = m->options.compute == COMPUTE_BF16;
	size_t rows = m->batch * m->seq;
	size_t some = bf16 ? HEAD_CHUNK_BF16 : HEAD_CHUNK;
	/* the same on all ranks that hold the model together */
	size_t degree = m->whole ? (size_t)m->options.split.degree : 1;
	size_t vocab = (model_whole(m)->shape.vocab + degree - 1) / degree;
	size_t chunk = (m->options.head_elements ? m->options.head_elements : some) / vocab;

	if (bf16 && chunk > HEAD_TILE)
		chunk = chunk / HEAD_TILE * HEAD_TILE;
	if (chunk > rows)
		chunk = rows;
	if (chunk == 0)
		return 1;
	/* Each chunk reads all of the head: none is left with a few rows only. */
	size_t chunks = (rows + chunk - 1) / chunk;
	return bf16 ? chunk : (rows + chunks - 1) / chunks;
}

uint64_t activations_bytes(const struct model *m)
{
	struct model_activations a = { .chunk_rows = head_chunk(m) };
	struct arena arena = { .activation_bytes = compute_bytes(m->options.compute) };

	a.layer = xcalloc(m->shape.layers, sizeof(*a.layer));
	lay_out_shared(&arena, m, &a);
	for (int i = 0; i == 0 || i < m->options.pipeline.depth; i++)
		lay_out_own(&arena, m, &a);
	free(a.layer);
	return arena.bytes;
}

/* Radians a token for the i-th pair of `turned` elements. */
static double turn_of(const struct model_shape *s, bool local, size_t i, size_t turned)
{
	const struct rope_scaling *scaling = &s->scaling;
	double turn = pow(local ? s->local_theta : s->rope_theta,
			  -2.0 * (double)i / (double)turned);

	if (scaling->factor == 0 || local)
		return turn;
	if (scaling->original == 0)
		return turn / scaling->factor;
	double turns = scaling->original * turn / (2 * 3.14159265358979323846);
	double blend = (turns - scaling->low) / (scaling->high - scaling->low);
	blend = fmin(fmax(blend, 0), 1);
	return (1 - blend) * turn / scaling->factor + blend * turn;
}

static void fill_rope(const struct model *m, float *table, bool local)
{
	const struct model_shape *s = &m->shape;
	size_t turned = model_turned(s), half = turned / 2;
	float *host = xmalloc(m->seq * turned * sizeof(float));

	for (size_t t = 0; t < m->seq; t++)
		for (size_t i = 0; i < half; i++) {
			double angle = (double)context_position(m, t) *
				       turn_of(s, local, i, turned);
			host[(t * half + i) * 2] = (float)cos(angle);
			host[(t * half + i) * 2 + 1] = (float)sin(angle);
		}
	m->backend->upload(m->device, table, host, m->seq * turned * sizeof(float));
	free(host);
}

static void lay_out_all(struct arena *p, const struct model *m, struct model_activations *a,
			const struct model_activations *beside)
{
	if (!beside)
		lay_out_shared(p, m, a);
	lay_out_own(p, m, a);
}

struct model_activations *
activations_create(const struct model *m, const struct model_activations *beside, struct err *err)
{
	struct model_activations *a = xcalloc(1, sizeof(*a));
	struct arena arena = { .activation_bytes = compute_bytes(m->options.compute) };

	if (beside)
		*a = *beside;
	a->layer = xcalloc(m->shape.layers, sizeof(*a->layer));
	a->chunk_rows = head_chunk(m);
	lay_out_all(&arena, m, a, beside);
	a->memory = m->backend->alloc(m->device, arena.bytes, "activations");
	if (!a->memory) {
		err_set(err, ERR_IO, "no memory for the activations of %zu x %zu tokens (%zu MiB)",
			m->batch, m->seq, arena.bytes >> 20);
		activations_destroy(m, a);
		return NULL;
	}
	arena = (struct arena){ a->memory, 0, arena.activation_bytes };
	lay_out_all(&arena, m, a, beside);
	if (beside)
		return a;
	if (!m->family->learned_positions)
		fill_rope(m, a->shared.rope, false);
	if (has_local_rope(m))
		fill_rope(m, a->shared.local_rope, true);
	return a;
}

void activations_destroy(const struct model *m, struct model_activations *a)
{
	if (!a)
		return;
	m->backend->free(m->device, a->memory);
	free(a->layer);
	free(a);
}
