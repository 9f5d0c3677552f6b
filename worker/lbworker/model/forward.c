/* SPDX-License-Identifier: MIT */
/* forward.c - the program of one micro-batch: forward, head with loss, backward.
 *
 * What backward needs again is kept per layer (struct layer_kept); everything else lives in one
 * set of buffers that all layers share. What layers do not keep is one buffer for
 * all of them, filled again when backward comes by. Names: N = batch * seq rows, D, F,
 * Q = (H + 2G) * C. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/context.h"
#include "worker/lbworker/model/family.h"
#include "worker/lbworker/model/split.h"

/* Logits held at a time; a GPU needs more of them to be busy, in whole tiles of rows. */
enum { HEAD_CHUNK = 32 << 20, HEAD_CHUNK_BF16 = 128 << 20, HEAD_TILE = 128 };

struct model_activations {
	struct layer_kept *layer;
	struct layer_shared shared;
	void *last; /* [S,D] the residual stream after the last layer */
	struct norm_kept final_norm;
	void *final;               /* [S,D] normed */
	void *logits;              /* [chunk,V] */
	float *loss;               /* [N] */
	int32_t *tokens, *targets; /* [N] */
	size_t chunk_rows;
	double *loss_sum;
	void *memory; /* all of the above but layer */
};

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

/* The parts of a layer that are named by AGAIN_ bits. */
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
	if (parts & AGAIN_UP)
		k->up = reserve(p, rows * s->ffn * (m->family->gated ? 2 : 1));
	if (parts & AGAIN_HIDDEN)
		k->hidden = reserve(p, rows * s->ffn);
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

/* Layers that do not keep a part share one buffer for it; the first layer lacks the most. */
static void lay_out_layers(struct arena *p, const struct model *m, struct model_activations *a)
{
	struct layer_kept common = { 0 };

	lay_out_parts(p, m, &common, layer_lacks(m, 0));
	for (size_t l = 0; l < m->shape.layers; l++) {
		struct layer_kept k = common;
		lay_out_rest(p, m, &k);
		lay_out_parts(p, m, &k, AGAIN_ALL & ~layer_lacks(m, l));
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

static void lay_out_all(struct arena *p, const struct model *m, struct model_activations *a)
{
	const struct model_shape *s = &m->shape;
	size_t rows = m->batch * m->seq;

	lay_out_layers(p, m, a);
	if (!m->family->learned_positions)
		a->shared.rope = reserve_words(p, m->seq * model_turned(s));
	a->shared.local_rope = has_local_rope(m) ? reserve_words(p, m->seq * model_turned(s))
						 : a->shared.rope;
	if (m->options.mask_documents)
		a->shared.begin = reserve_words(p, m->batch * m->options.seq);
	a->last = reserve(p, split_rows(m, rows) * s->dim);
	lay_out_norm(p, m, &a->final_norm);
	a->final = reserve(p, split_rows(m, rows) * s->dim);
	a->logits = reserve(p, a->chunk_rows * s->vocab);
	a->loss = reserve_words(p, rows);
	a->shared.delta = reserve(p, rows * s->dim);
	a->shared.dx = reserve(p, split_rows(m, rows) * s->dim);
	a->shared.dnormed = reserve(p, rows * s->dim);
	a->shared.dattended = reserve(p, rows * model_attended_width(s));
	a->shared.dqkv = reserve(p, rows * model_qkv_width(s));
	a->shared.dhidden = reserve(p, rows * s->ffn);
	a->tokens = reserve_words(p, rows);
	a->targets = reserve_words(p, rows);
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
	lay_out_all(&arena, m, &a);
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

struct model_activations *activations_create(const struct model *m, struct err *err)
{
	struct model_activations *a = xcalloc(1, sizeof(*a));
	struct arena arena = { .activation_bytes = compute_bytes(m->options.compute) };

	a->layer = xcalloc(m->shape.layers, sizeof(*a->layer));
	a->chunk_rows = head_chunk(m);
	lay_out_all(&arena, m, a);
	a->memory = m->backend->alloc(m->device, arena.bytes, "activations");
	if (!a->memory) {
		err_set(err, ERR_IO, "no memory for the activations of %zu x %zu tokens (%zu MiB)",
			m->batch, m->seq, arena.bytes >> 20);
		activations_destroy(m, a);
		return NULL;
	}
	arena = (struct arena){ a->memory, 0, arena.activation_bytes };
	lay_out_all(&arena, m, a);
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

/* What is wanted of a pass. */
struct head_pass {
	bool gradients, accumulate;
	float scale;
	double *loss_sum; /* device; of this pass, or added to when is_summed */
	bool is_summed;
	void (*behind)(void *arg); /* may be NULL */
	void *arg;
};

/* --- forward -------------------------------------------------------------------------------- */

/* Where the document of each token begins: behind a separator, or where the sequence does. */
static void feed_documents(const struct model *m, const int32_t *tokens)
{
	size_t rows = m->batch * m->options.seq;
	int32_t *begin = xmalloc(rows * sizeof(*begin));

	for (size_t i = 0; i < rows; i++) {
		size_t at = i % m->options.seq;
		begin[i] = at == 0                                 ? 0
			   : tokens[i - 1] == m->options.separator ? (int32_t)at
								   : begin[i - 1];
	}
	m->backend->upload(m->device, m->activations->shared.begin, begin, rows * sizeof(*begin));
	free(begin);
}

static void feed_some(const struct model *m, size_t at, const int32_t *tokens,
		      const int32_t *targets, size_t from, size_t rows)
{
	struct model_activations *a = m->activations;

	m->backend->upload(m->device, a->tokens + at, tokens + from, rows * sizeof(*tokens));
	m->backend->upload(m->device, a->targets + at, targets + from, rows * sizeof(*targets));
}

/* Of each sequence what is ours, one run or two. */
static void feed(const struct model *m, const int32_t *tokens, const int32_t *targets)
{
	size_t run = context_run(m);

	if (m->activations->shared.begin)
		feed_documents(m, tokens);
	if (!context_is_shared(m)) {
		feed_some(m, 0, tokens, targets, 0, m->batch * m->seq);
		return;
	}
	for (size_t row = 0; row < m->batch * m->seq; row += run)
		feed_some(m, row, tokens, targets,
			  row / m->seq * m->options.seq + context_position(m, row % m->seq), run);
}

/* Learned positions of rows that begin anywhere: run by run. */
static void add_positions(const struct model *m, void *x, size_t first, size_t rows)
{
	const float *table = m->weights + model_outer(m, PARAM_POSITIONS);
	size_t dim = m->shape.dim, run = context_run(m);

	if (!context_is_shared(m)) {
		m->backend->positions_forward(m->device, x, table + first * dim, rows,
					      rows < m->seq ? rows : m->seq, dim);
		return;
	}
	for (size_t row = 0; row < rows; row += run)
		m->backend->positions_forward(m->device, model_row(m, x, row, dim),
					      table + context_position(m, row % m->seq) * dim, run,
					      run, dim);
}

static float embedding_factor(const struct model_shape *s)
{
	return (float)sqrt((double)s->dim);
}

static void embed(const struct model *m, void *to, size_t rows)
{
	const float *table = m->weights + model_outer(m, PARAM_EMBEDDING);
	const struct vocab_slice slice = slice_vocab(m);
	const int32_t *tokens = m->activations->tokens;

	if (m->whole)
		m->backend->embed_slice_forward(m->device, to, table, tokens, rows, m->shape.dim,
						&slice);
	else
		m->backend->embed_forward(m->device, to, table, tokens, rows, m->shape.dim);
}

/* Rows of the stream before the first layer; all that follows works on these. */
static void begin(const struct model *m, size_t first, size_t rows)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	void *x = m->whole ? a->shared.delta : a->layer[0].x;

	a->shared.first = first;
	a->shared.rows = rows;
	model_need(m, m->units - 1);
	model_need(m, 0);
	embed(m, x, rows);
	if (m->family->scaled_embedding)
		m->backend->scaled_sum(m->device, x, x, embedding_factor(s), NULL, rows * s->dim);
	if (m->family->learned_positions && m->options.split.rank == 0)
		add_positions(m, x, first, rows);
	split_reduce(m, &a->shared, a->layer[0].x, a->shared.delta, rows, s->dim);
	model_release(m, 0);
}

static void through_layers(const struct model *m)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	const void *before = NULL;

	for (size_t l = 0; l < s->layers; l++) {
		model_need(m, 1 + l);
		layer_forward(m, l, &a->layer[l], &a->shared, before);
		model_release(m, 1 + l);
		before = layer_stream(m, &a->layer[l]);
	}
	norm_forward(m, model_outer(m, PARAM_FINAL_NORM), model_outer(m, PARAM_FINAL_NORM_BIAS),
		     &a->final_norm, a->final, a->last, before, a->shared.delta,
		     split_rows(m, a->shared.rows));
}

static void forward(const struct model *m, const struct head_pass *pass)
{
	(void)pass;
	begin(m, 0, m->batch * m->seq);
	through_layers(m);
}

/* --- head and loss, by chunks of rows ------------------------------------------------------- */

static struct linear head_of(const struct model *m)
{
	return (struct linear){ .weight = model_outer(m, PARAM_HEAD),
				.bias = ABSENT,
				.in = m->shape.dim,
				.out = m->shape.vocab,
				.scale = m->scales.head,
				.layer = m->shape.layers,
				.module = MODULE_OUTPUT };
}

static void cap_logits(const struct model *m, size_t rows)
{
	const struct model_shape *s = &m->shape;

	if (s->logit_softcap > 0)
		m->backend->softcap(m->device, m->activations->logits, rows * s->vocab,
				    (float)s->logit_softcap);
}

/* Of rows of logits, which become their gradient where it is wanted. */
static void losses_of(const struct model *m, const struct head_pass *pass, size_t row, size_t rows)
{
	struct model_activations *a = m->activations;
	const struct backend *be = m->backend;
	const bool trains = pass->gradients;
	const struct loss_terms terms = { .smoothing = trains ? m->options.smoothing : 0.0f,
					  .z_loss = trains ? m->options.z_loss : 0.0f,
					  .softcap = (float)m->shape.logit_softcap };
	const float scale = trains ? pass->scale : 0.0f;

	cap_logits(m, rows);
	if (terms.smoothing > 0 || terms.z_loss > 0 || terms.softcap > 0)
		be->cross_entropy_with(m->device, a->loss + row, a->logits, a->targets + row, rows,
				       m->shape.vocab, scale, &terms);
	else
		split_loss(m, &a->shared, a->loss + row, a->logits, a->targets + row, rows, scale);
}

/* Losses into a->loss; with gradients also shared.dnormed and the head's weight gradient. */
static void head_and_loss(const struct model *m, const struct head_pass *pass)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	const struct linear head = head_of(m);
	size_t all = m->batch * m->seq, unit = model_unit_of_head(m);
	const void *final = split_gather(m, a->shared.gathered, a->final, all, s->dim);

	model_need(m, unit);
	for (size_t row = 0; row < all; row += a->chunk_rows) {
		size_t rows = all - row < a->chunk_rows ? all - row : a->chunk_rows;
		const void *x = (const char *) final +
				row * s->dim * compute_bytes(m->options.compute);
		linear_forward(m, &head, a->logits, x, rows, 0);
		losses_of(m, pass, row, rows);
		if (!pass->gradients)
			continue;
		linear_backward_weight(m, &head, a->logits, x, rows, pass->accumulate || row > 0);
		linear_backward_input(m, &head, model_row(m, a->shared.dnormed, row, s->dim),
				      a->logits, rows);
		backend_join(m->backend, m->device);
	}
	model_release(m, unit);
	if (pass->gradients)
		split_reduce(m, &a->shared, a->shared.dnormed, a->shared.dnormed, all, s->dim);
	if (pass->gradients && !s->tied)
		model_done(m, unit);
}

/* --- backward ------------------------------------------------------------------------------- */

static void positions_backward(const struct model *m, const void *dx, bool accumulate)
{
	float *table = model_grad(m, model_outer(m, PARAM_POSITIONS));
	size_t rows = m->batch * m->seq, dim = m->shape.dim, run = context_run(m);
	const size_t row_bytes = dim * compute_bytes(m->options.compute);

	if (!context_is_shared(m)) {
		m->backend->positions_backward(m->device, table, dx, rows, m->seq, dim, accumulate);
		return;
	}
	if (!accumulate)
		m->backend->zero(m->device, table, m->shape.positions * dim * sizeof(float));
	for (size_t row = 0; row < rows; row += run)
		m->backend->positions_backward(m->device,
					       table + context_position(m, row % m->seq) * dim,
					       (const char *)dx + row * row_bytes, run, run, dim,
					       true);
}

static void tables_backward(const struct model *m, bool accumulate)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	float *table = model_grad(m, model_outer(m, PARAM_EMBEDDING));
	size_t rows = m->batch * m->seq;
	const struct vocab_slice slice = slice_vocab(m);
	const void *dx = split_gather(m, a->shared.dgathered, a->shared.dx, rows, s->dim);

	if (m->family->scaled_embedding)
		m->backend->scaled_sum(m->device, a->shared.dx, a->shared.dx, embedding_factor(s),
				       NULL, rows * s->dim);
	/* A tied head has already put its part there. */
	if (!s->tied && !accumulate)
		m->backend->zero(m->device, table, s->vocab * s->dim * sizeof(float));
	if (m->whole)
		m->backend->embed_slice_backward(m->device, table, dx, a->tokens, rows, s->dim,
						 &slice);
	else
		m->backend->embed_backward(m->device, table, dx, a->tokens, rows, s->dim);
	if (m->family->learned_positions)
		positions_backward(m, dx, accumulate);
}

static void backward(const struct model *m, const struct head_pass *pass)
{
	struct model_activations *a = m->activations;
	bool accumulate = pass->accumulate;

	m->backend->zero(m->device, a->shared.dx,
			 split_rows(m, m->batch * m->seq) * m->shape.dim *
				 compute_bytes(m->options.compute));
	norm_backward(m, model_outer(m, PARAM_FINAL_NORM), model_outer(m, PARAM_FINAL_NORM_BIAS),
		      &a->final_norm, a->shared.dx, a->shared.dnormed, a->last, accumulate);
	for (size_t l = m->shape.layers; l-- > 0;) {
		model_need(m, 1 + l);
		layer_again(m, l, &a->layer[l], &a->shared);
		layer_backward(m, l, &a->layer[l], &a->shared, accumulate);
		model_release(m, 1 + l);
		model_done(m, 1 + l);
	}
	tables_backward(m, accumulate);
	model_done(m, 0);
	model_done(m, m->units - 1);
}

/* --- the two passes ------------------------------------------------------------------------- */

static int collect_loss(const struct model *m, double *loss_sum, struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	m->backend->download(m->device, loss_sum, m->activations->loss_sum, sizeof(*loss_sum));
	if (m->backend->finish(m->device, why))
		return err_set(err, ERR_INTERNAL, "%s", why);
	return 0;
}

/* `what` under a name that profilers show. */
static void named(const struct model *m, const char *name, const struct head_pass *pass,
		  void (*what)(const struct model *, const struct head_pass *))
{
	backend_range(m->backend, m->device, name);
	what(m, pass);
	backend_range_end(m->backend, m->device);
}

/* The number of a pass as a program of the device: the same number, the same operations. */
static uint64_t program_of(const struct model *m, const struct head_pass *pass)
{
	uint32_t scale;

	memcpy(&scale, &pass->scale, sizeof(scale));
	return (uint64_t)scale << 4 | (pass->behind ? 8 : 0) |
	       (pass->loss_sum != m->activations->loss_sum ? 4 : 0) | (pass->gradients ? 2 : 0) |
	       (pass->accumulate ? 1 : 0);
}

static void sum_losses(const struct model *m, const struct head_pass *pass)
{
	m->backend->sum_losses(m->device, pass->loss_sum, m->activations->loss, m->batch * m->seq,
			       pass->is_summed);
}

static void queue(const struct model *m, const struct head_pass *pass)
{
	named(m, "forward", pass, forward);
	named(m, "head and loss", pass, head_and_loss);
	sum_losses(m, pass);
	if (pass->gradients)
		named(m, "backward", pass, backward);
	if (pass->behind)
		pass->behind(pass->arg);
}

/* Tokens and targets are on the device; all the rest of a pass. */
static void run(const struct model *m, const struct head_pass *pass)
{
	const struct backend *be = m->backend;
	uint64_t program = program_of(m, pass);

	if (be->replay && be->replay(m->device, program))
		return;
	if (be->record)
		be->record(m->device, program);
	queue(m, pass);
	if (be->record_end && !be->record_end(m->device, program))
		queue(m, pass);
}

int model_backprop(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
		   bool accumulate, double *loss_sum, struct err *err)
{
	const struct head_pass pass = { .gradients = true,
					.accumulate = accumulate,
					.scale = scale,
					.loss_sum = m->activations->loss_sum };
	feed(m, tokens, targets);
	run(m, &pass);
	return collect_loss(m, loss_sum, err);
}

void model_queue(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
		 bool accumulate, double *loss_sum, void (*behind)(void *arg), void *arg)
{
	const struct head_pass pass = { .gradients = true,
					.accumulate = accumulate,
					.scale = scale,
					.loss_sum = loss_sum,
					.is_summed = accumulate,
					.behind = behind,
					.arg = arg };
	feed(m, tokens, targets);
	run(m, &pass);
}

int model_loss(struct model *m, const int32_t *tokens, const int32_t *targets, double *loss_sum,
	       struct err *err)
{
	const struct head_pass pass = { .loss_sum = m->activations->loss_sum };
	precision_evaluating(m->precision, true);
	feed(m, tokens, targets);
	run(m, &pass);
	precision_evaluating(m->precision, false);
	return collect_loss(m, loss_sum, err);
}

/* Logits of `rows` of the rows that came out of the last layer, to host memory. */
static int read_logits(struct model *m, size_t first, size_t rows, float *logits, struct err *err)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	const struct linear head = head_of(m);
	char why[BACKEND_TEXT_BYTES];
	size_t count;

	model_need(m, model_unit_of_head(m));
	for (size_t row = 0; row < rows; row += count) {
		count = rows - row < a->chunk_rows ? rows - row : a->chunk_rows;
		linear_forward(m, &head, a->logits, model_row(m, a->final, first + row, s->dim),
			       count, 0);
		cap_logits(m, count);
		m->backend->download_activations(m->device, logits + row * s->vocab, a->logits,
						 count * s->vocab);
	}
	return m->backend->finish(m->device, why) ? err_set(err, ERR_INTERNAL, "%s", why) : 0;
}

int model_logits(struct model *m, const int32_t *tokens, size_t first, size_t rows, float *logits,
		 struct err *err)
{
	feed(m, tokens, tokens);
	forward(m, NULL);
	return read_logits(m, first, rows, logits, err);
}

int model_extend(struct model *m, const int32_t *tokens, size_t first, size_t count, size_t rows,
		 float *logits, struct err *err)
{
	m->backend->upload(m->device, m->activations->tokens, tokens + first,
			   count * sizeof(*tokens));
	begin(m, first, count);
	through_layers(m);
	return read_logits(m, count - rows, rows, logits, err);
}
