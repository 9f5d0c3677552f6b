/* SPDX-License-Identifier: MIT */
/* forward.c - the program of one micro-batch: forward, head with loss, backward.
 *
 * What backward needs again is kept per layer (struct layer_kept); everything else lives in one
 * set of buffers that all layers share. The residual stream x is kept twice a layer, before each
 * norm. Names: N = batch * seq rows, D, F, Q = (H + 2G) * C. */
#include "worker/lbworker/model.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"

enum { HEAD_CHUNK_FLOATS = 16 * 1024 * 1024 };	/* logits held at a time */

struct layer_kept {
	float *x;			/* [N,D] the residual stream as the layer found it */
	float *attention_rstd;		/* [N] */
	float *attention_in;		/* [N,D] normed */
	float *qkv;			/* [N,Q] rotated */
	float *attended;		/* [N,D] */
	float *lse;			/* [batch,H,T] */
	float *middle;			/* [N,D] the residual stream between the two halves */
	float *ffn_rstd;		/* [N] */
	float *ffn_in;			/* [N,D] normed */
	float *gate_up;			/* [N,2F] */
	float *hidden;			/* [N,F] */
};

struct model_activations {
	struct layer_kept *layer;
	float *rope;			/* [T, C/2, 2] cos, sin */
	float *last;			/* [N,D] the residual stream after the last layer */
	float *final_rstd, *final;	/* [N], [N,D] normed */
	float *delta;			/* [N,D] what a half of a layer adds to the stream */
	float *logits;			/* [chunk,V] */
	float *loss;			/* [N] */
	float *dx, *dnormed;		/* [N,D] gradient of the stream, and behind a norm */
	float *dattended;		/* [N,D] */
	float *dqkv;			/* [N,Q] */
	float *dhidden;			/* [N,F] */
	int32_t *tokens, *targets;	/* [N] */
	size_t chunk_rows;
	float *loss_host;		/* [N] */
	void *memory;			/* all of the above but layer and loss_host */
};

/* --- the plan: one walk counts, a second one hands out addresses ---------------------------- */

struct plan {
	char *base;			/* NULL while counting */
	size_t bytes;
};

static void *reserve(struct plan *plan, size_t count)
{
	const size_t align = 64;
	char *at = plan->base ? plan->base + plan->bytes : NULL;
	plan->bytes += (count * sizeof(float) + align - 1) / align * align;
	return at;
}

static void plan_layer(struct plan *p, const struct model *m, struct layer_kept *k)
{
	const struct model_shape *s = &m->shape;
	size_t rows = m->batch * m->seq;
	size_t q = (s->heads + 2 * s->kv_heads) * (s->dim / s->heads);

	k->x = reserve(p, rows * s->dim);
	k->attention_rstd = reserve(p, rows);
	k->attention_in = reserve(p, rows * s->dim);
	k->qkv = reserve(p, rows * q);
	k->attended = reserve(p, rows * s->dim);
	k->lse = reserve(p, rows * s->heads);
	k->middle = reserve(p, rows * s->dim);
	k->ffn_rstd = reserve(p, rows);
	k->ffn_in = reserve(p, rows * s->dim);
	k->gate_up = reserve(p, rows * 2 * s->ffn);
	k->hidden = reserve(p, rows * s->ffn);
}

static void plan_all(struct plan *p, const struct model *m, struct model_activations *a)
{
	const struct model_shape *s = &m->shape;
	size_t rows = m->batch * m->seq, head_dim = s->dim / s->heads;

	for (size_t l = 0; l < s->layers; l++)
		plan_layer(p, m, &a->layer[l]);
	a->rope = reserve(p, m->seq * head_dim);
	a->last = reserve(p, rows * s->dim);
	a->final_rstd = reserve(p, rows);
	a->final = reserve(p, rows * s->dim);
	a->delta = reserve(p, rows * s->dim);
	a->logits = reserve(p, a->chunk_rows * s->vocab);
	a->loss = reserve(p, rows);
	a->dx = reserve(p, rows * s->dim);
	a->dnormed = reserve(p, rows * s->dim);
	a->dattended = reserve(p, rows * s->dim);
	a->dqkv = reserve(p, rows * (s->heads + 2 * s->kv_heads) * head_dim);
	a->dhidden = reserve(p, rows * s->ffn);
	a->tokens = reserve(p, rows);
	a->targets = reserve(p, rows);
}

static void fill_rope(const struct model *m, float *table)
{
	size_t head_dim = m->shape.dim / m->shape.heads, half = head_dim / 2;
	float *host = xmalloc(m->seq * head_dim * sizeof(float));

	for (size_t t = 0; t < m->seq; t++)
		for (size_t i = 0; i < half; i++) {
			double turn = pow(m->shape.rope_theta,
					  -2.0 * (double)i / (double)head_dim);
			host[(t * half + i) * 2] = (float)cos((double)t * turn);
			host[(t * half + i) * 2 + 1] = (float)sin((double)t * turn);
		}
	m->backend->upload(m->device, table, host, m->seq * head_dim * sizeof(float));
	free(host);
}

struct model_activations *activations_create(const struct model *m, struct err *err)
{
	struct model_activations *a = xcalloc(1, sizeof(*a));
	size_t rows = m->batch * m->seq;
	struct plan plan = { 0 };

	a->layer = xcalloc(m->shape.layers, sizeof(*a->layer));
	a->loss_host = xcalloc(rows, sizeof(float));
	a->chunk_rows = HEAD_CHUNK_FLOATS / m->shape.vocab;
	if (a->chunk_rows > rows)
		a->chunk_rows = rows;
	if (a->chunk_rows == 0)
		a->chunk_rows = 1;
	plan_all(&plan, m, a);
	a->memory = m->backend->alloc(m->device, plan.bytes);
	if (!a->memory) {
		err_set(err, ERR_IO, "no memory for the activations of %zu x %zu tokens (%zu MiB)",
			m->batch, m->seq, plan.bytes >> 20);
		activations_destroy(m, a);
		return NULL;
	}
	plan = (struct plan){ .base = a->memory };
	plan_all(&plan, m, a);
	fill_rope(m, a->rope);
	return a;
}

void activations_destroy(const struct model *m, struct model_activations *a)
{
	if (!a)
		return;
	m->backend->free(m->device, a->memory);
	free(a->layer);
	free(a->loss_host);
	free(a);
}

/* --- matrix products of a linear layer: y[N,out] = x[N,in] W[out,in]^T ---------------------- */

static void linear_forward(const struct model *m, float *y, const float *x, const float *w,
			   size_t rows, size_t in, size_t out)
{
	const struct gemm g = { .m = rows, .n = out, .k = in, .a = x, .lda = in, .b = w, .ldb = in,
				.trans_b = true, .c = y, .ldc = out };
	m->backend->gemm(m->device, &g);
}

/* dx = dy W */
static void linear_backward_input(const struct model *m, float *dx, const float *dy,
				  const float *w, size_t rows, size_t in, size_t out)
{
	const struct gemm g = { .m = rows, .n = in, .k = out, .a = dy, .lda = out, .b = w,
				.ldb = in, .c = dx, .ldc = in };
	m->backend->gemm(m->device, &g);
}

/* dW (+)= dy^T x */
static void linear_backward_weight(const struct model *m, float *dw, const float *dy,
				   const float *x, size_t rows, size_t in, size_t out,
				   bool accumulate)
{
	const struct gemm g = { .m = out, .n = in, .k = rows, .a = dy, .lda = out, .trans_a = true,
				.b = x, .ldb = in, .c = dw, .ldc = in,
				.beta = accumulate ? 1.0f : 0.0f };
	m->backend->gemm(m->device, &g);
}

static struct attention attention_shape(const struct model *m)
{
	const struct model_shape *s = &m->shape;
	return (struct attention){ .batch = m->batch, .seq = m->seq, .heads = s->heads,
				   .kv_heads = s->kv_heads, .head_dim = s->dim / s->heads };
}

static size_t qkv_width(const struct model *m)
{
	const struct model_shape *s = &m->shape;
	return (s->heads + 2 * s->kv_heads) * (s->dim / s->heads);
}

/* --- forward -------------------------------------------------------------------------------- */

/* Leaves in a->delta what the feed-forward adds; the next norm adds it to the stream. */
static void layer_forward(const struct model *m, size_t l)
{
	const struct model_shape *s = &m->shape;
	const struct model_layer *at = &m->layer[l];
	struct model_activations *a = m->activations;
	struct layer_kept *k = &a->layer[l];
	const struct backend *be = m->backend;
	const struct attention shape = attention_shape(m);
	const float *w = m->weights;
	size_t rows = m->batch * m->seq;

	if (l == 0)
		be->rmsnorm_forward(m->device, k->attention_in, k->attention_rstd, NULL, k->x, NULL,
				    w + at->attention_norm, rows, s->dim, s->norm_eps);
	else
		be->rmsnorm_forward(m->device, k->attention_in, k->attention_rstd, k->x,
				    a->layer[l - 1].middle, a->delta, w + at->attention_norm, rows,
				    s->dim, s->norm_eps);
	linear_forward(m, k->qkv, k->attention_in, w + at->qkv, rows, s->dim, qkv_width(m));
	be->rope(m->device, k->qkv, a->rope, &shape, false);
	be->attention_forward(m->device, k->attended, k->lse, k->qkv, &shape);
	linear_forward(m, a->delta, k->attended, w + at->out, rows, s->dim, s->dim);
	be->rmsnorm_forward(m->device, k->ffn_in, k->ffn_rstd, k->middle, k->x, a->delta,
			    w + at->ffn_norm, rows, s->dim, s->norm_eps);
	linear_forward(m, k->gate_up, k->ffn_in, w + at->gate_up, rows, s->dim, 2 * s->ffn);
	be->swiglu_forward(m->device, k->hidden, k->gate_up, rows, s->ffn);
	linear_forward(m, a->delta, k->hidden, w + at->down, rows, s->ffn, s->dim);
}

static void forward(const struct model *m, const int32_t *tokens, const int32_t *targets)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	size_t rows = m->batch * m->seq;

	m->backend->upload(m->device, a->tokens, tokens, rows * sizeof(*tokens));
	m->backend->upload(m->device, a->targets, targets, rows * sizeof(*targets));
	m->backend->embed_forward(m->device, a->layer[0].x, m->weights + m->embedding, a->tokens,
				  rows, s->dim);
	for (size_t l = 0; l < s->layers; l++)
		layer_forward(m, l);
	m->backend->rmsnorm_forward(m->device, a->final, a->final_rstd, a->last,
				    a->layer[s->layers - 1].middle, a->delta,
				    m->weights + m->final_norm, rows, s->dim, s->norm_eps);
}

/* --- head and loss, by chunks of rows ------------------------------------------------------- */

struct head_pass {
	bool gradients, accumulate;
	float scale;
};

/* Losses into a->loss; with gradients also a->dnormed and the head's weight gradient. */
static void head_and_loss(const struct model *m, const struct head_pass *pass)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	const float *w = m->weights + m->head;
	size_t all = m->batch * m->seq;

	for (size_t row = 0; row < all; row += a->chunk_rows) {
		size_t rows = all - row < a->chunk_rows ? all - row : a->chunk_rows;
		const float *x = a->final + row * s->dim;
		linear_forward(m, a->logits, x, w, rows, s->dim, s->vocab);
		m->backend->cross_entropy(m->device, a->loss + row, a->logits, a->targets + row,
					  rows, s->vocab, pass->gradients ? pass->scale : 0.0f);
		if (!pass->gradients)
			continue;
		linear_backward_input(m, a->dnormed + row * s->dim, a->logits, w, rows, s->dim,
				      s->vocab);
		linear_backward_weight(m, m->grads + m->head, a->logits, x, rows, s->dim, s->vocab,
				       pass->accumulate || row > 0);
	}
}

/* --- backward ------------------------------------------------------------------------------- */

/* a->dx holds the gradient of the stream behind the layer, then of the stream before it. */
static void layer_backward(const struct model *m, size_t l, bool accumulate)
{
	const struct model_shape *s = &m->shape;
	const struct model_layer *at = &m->layer[l];
	struct model_activations *a = m->activations;
	struct layer_kept *k = &a->layer[l];
	const struct backend *be = m->backend;
	const struct attention shape = attention_shape(m);
	const float *w = m->weights;
	float *g = m->grads;
	size_t rows = m->batch * m->seq;

	linear_backward_weight(m, g + at->down, a->dx, k->hidden, rows, s->ffn, s->dim, accumulate);
	linear_backward_input(m, a->dhidden, a->dx, w + at->down, rows, s->ffn, s->dim);
	be->swiglu_backward(m->device, k->gate_up, a->dhidden, k->gate_up, rows, s->ffn);
	linear_backward_weight(m, g + at->gate_up, k->gate_up, k->ffn_in, rows, s->dim, 2 * s->ffn,
			       accumulate);
	linear_backward_input(m, a->dnormed, k->gate_up, w + at->gate_up, rows, s->dim, 2 * s->ffn);
	be->rmsnorm_backward(m->device, a->dx, g + at->ffn_norm, a->dnormed, k->middle,
			     k->ffn_rstd, w + at->ffn_norm, rows, s->dim, accumulate);

	linear_backward_weight(m, g + at->out, a->dx, k->attended, rows, s->dim, s->dim,
			       accumulate);
	linear_backward_input(m, a->dattended, a->dx, w + at->out, rows, s->dim, s->dim);
	be->attention_backward(m->device, a->dqkv, a->dattended, k->attended, k->lse, k->qkv,
			       &shape);
	be->rope(m->device, a->dqkv, a->rope, &shape, true);
	linear_backward_weight(m, g + at->qkv, a->dqkv, k->attention_in, rows, s->dim, qkv_width(m),
			       accumulate);
	linear_backward_input(m, a->dnormed, a->dqkv, w + at->qkv, rows, s->dim, qkv_width(m));
	be->rmsnorm_backward(m->device, a->dx, g + at->attention_norm, a->dnormed, k->x,
			     k->attention_rstd, w + at->attention_norm, rows, s->dim, accumulate);
}

static void backward(const struct model *m, bool accumulate)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	size_t rows = m->batch * m->seq;

	m->backend->zero(m->device, a->dx, rows * s->dim * sizeof(float));
	m->backend->rmsnorm_backward(m->device, a->dx, m->grads + m->final_norm, a->dnormed,
				     a->last, a->final_rstd, m->weights + m->final_norm, rows,
				     s->dim, accumulate);
	for (size_t l = s->layers; l-- > 0;)
		layer_backward(m, l, accumulate);
	/* A tied head has already put its part there. */
	if (!s->tied && !accumulate)
		m->backend->zero(m->device, m->grads + m->embedding,
				 s->vocab * s->dim * sizeof(float));
	m->backend->embed_backward(m->device, m->grads + m->embedding, a->dx, a->tokens, rows,
				   s->dim);
}

/* --- the two passes ------------------------------------------------------------------------- */

static int collect_loss(const struct model *m, double *loss_sum, struct err *err)
{
	struct model_activations *a = m->activations;
	size_t rows = m->batch * m->seq;
	char why[BACKEND_TEXT_BYTES];

	m->backend->download(m->device, a->loss_host, a->loss, rows * sizeof(float));
	*loss_sum = 0;
	for (size_t i = 0; i < rows; i++)
		*loss_sum += (double)a->loss_host[i];
	if (m->backend->finish(m->device, why))
		return err_set(err, ERR_INTERNAL, "%s", why);
	return 0;
}

int model_backprop(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
		   bool accumulate, double *loss_sum, struct err *err)
{
	const struct head_pass pass = { .gradients = true, .accumulate = accumulate,
					.scale = scale };
	forward(m, tokens, targets);
	head_and_loss(m, &pass);
	backward(m, accumulate);
	return collect_loss(m, loss_sum, err);
}

int model_loss(struct model *m, const int32_t *tokens, const int32_t *targets, double *loss_sum,
	       struct err *err)
{
	const struct head_pass pass = { .gradients = false };
	forward(m, tokens, targets);
	head_and_loss(m, &pass);
	return collect_loss(m, loss_sum, err);
}
