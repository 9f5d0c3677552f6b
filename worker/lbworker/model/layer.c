/* SPDX-License-Identifier: MIT */
/* layer.c - a layer forward and backward, from steps that all families share.
 *
 *   in sequence (llama, gpt2):  middle = x + attention(norm1(x)); x' = middle + ffn(norm2(middle))
 *   side by side (neox):        x' = x + attention(norm1(x)) + ffn(norm2(x))
 *
 * A layer with tensors for it also norms what a half gives (post1, post2), before it is added, and
 * query and key heads before they turn; one without norm1 or norm2 lets the half read the stream
 * itself.
 *
 * The last sum is left to the norm that comes next, which reads both anyway. */
#include <math.h>

#include "worker/lbworker/model/context.h"
#include "worker/lbworker/model/layer.h"
#include "worker/lbworker/model/split.h"

static size_t row_count(const struct model *m)
{
	return m->batch * m->seq;
}

/* --- a norm ---------------------------------------------------------------------------------- */

/* The `width` weights of a norm as it multiplies by them, until the next call with that `place`, 0
 * or 1. */
static const float *norm_weight(const struct model *m, size_t weight, size_t width, int place)
{
	size_t room = norm_width(&m->shape);
	float *to = m->ones ? m->ones + room * (size_t)(1 + place) : NULL;

	if (!to)
		return m->weights + weight;
	m->backend->copy(m->device, to, m->ones, width * sizeof(float));
	m->backend->add(m->device, to, m->weights + weight, width);
	return to;
}

void norm_forward(const struct model *m, size_t weight, size_t bias, const struct norm_kept *kept,
		  void *out, void *sum, const void *x, const void *delta, size_t rows)
{
	const struct model_shape *s = &m->shape;
	const float *w = norm_weight(m, weight, s->dim, 0);

	if (m->family->layer_norm)
		m->backend->layernorm_forward(m->device, out, kept->mean, kept->rstd, sum, x, delta,
					      w, m->weights + bias, rows, s->dim, s->norm_eps);
	else
		m->backend->rmsnorm_forward(m->device, out, kept->rstd, sum, x, delta, w, rows,
					    s->dim, s->norm_eps);
}

void norm_backward(const struct model *m, size_t weight, size_t bias, const struct norm_kept *kept,
		   void *dx, const void *dout, const void *x, bool accumulate)
{
	float *dweight = model_grad(m, weight);

	if (m->family->layer_norm)
		m->backend->layernorm_backward(m->device, dx, dweight, model_grad(m, bias), dout, x,
					       kept->mean, kept->rstd, m->weights + weight,
					       split_rows(m, row_count(m)), m->shape.dim,
					       accumulate);
	else
		m->backend->rmsnorm_backward(m->device, dx, dweight, dout, x, kept->rstd,
					     norm_weight(m, weight, m->shape.dim, 0),
					     split_rows(m, row_count(m)), m->shape.dim, accumulate);
}

/* out = x + delta */
static void add_rows(const struct model *m, void *out, const void *x, const void *delta,
		     size_t rows)
{
	m->backend->scaled_sum(m->device, out, x, 1.0f, delta, rows * m->shape.dim);
}

/* --- the four products of a layer, and its attention ------------------------------------------ */

static struct linear qkv_of(const struct model *m, size_t l)
{
	return linear_of(m, l, PARAM_QKV, PARAM_QKV_BIAS, m->shape.dim, model_qkv_width(&m->shape),
			 m->scales.qkv);
}

static struct linear out_of(const struct model *m, size_t l)
{
	return linear_of(m, l, PARAM_OUT, PARAM_OUT_BIAS, model_attended_width(&m->shape),
			 m->shape.dim, m->scales.out);
}

static struct linear up_of(const struct model *m, size_t l)
{
	size_t width = model_ffn_width(&m->shape, l) * (m->family->gated ? 2 : 1);

	struct linear up = linear_of(m, l, PARAM_UP, PARAM_UP_BIAS, m->shape.dim, width,
				     m->scales.up);

	if (m->family->gated)
		up.first_half = m->scales.gate;
	return up;
}

static struct linear down_of(const struct model *m, size_t l)
{
	return linear_of(m, l, PARAM_DOWN, PARAM_DOWN_BIAS, model_ffn_width(&m->shape, l),
			 m->shape.dim, m->scales.down);
}

static struct attention attention_of(const struct model *m, size_t l,
				     const struct layer_shared *shared)
{
	const struct model_shape *s = &m->shape;

	return (struct attention){
		.batch = m->batch,
		.seq = m->seq,
		.heads = s->heads,
		.kv_heads = s->kv_heads,
		.head_dim = model_head_dim(s),
		.rotary = s->rotary,
		.interleaved = m->family->interleaved,
		.scale = s->query_scalar > 0 ? (float)(1 / sqrt(s->query_scalar))
					     : m->scales.scores,
		.window = model_slides(s, l) && s->window < m->options.seq ? s->window : 0,
		.begin = shared->begin,
		.softcap = (float)s->score_softcap,
	};
}

static struct qk_norm qk_norm_of(const struct model *m, size_t rows)
{
	const struct model_shape *s = &m->shape;

	return (struct qk_norm){ .rows = rows,
				 .heads = s->heads,
				 .kv_heads = s->kv_heads,
				 .head_dim = model_head_dim(s),
				 .whole = m->norms_whole,
				 .eps = s->norm_eps };
}

static void qk_norm_forward(const struct model *m, size_t l, const struct layer_kept *k, void *qkv,
			    size_t rows)
{
	const size_t *at = m->layer[l].at;
	const struct qk_norm n = qk_norm_of(m, rows);

	m->backend->qk_norm_forward(
		m->device, qkv, k->qk_rstd, k->raw,
		norm_weight(m, at[PARAM_QUERY_NORM], qk_norm_width(m, n.heads), 0),
		norm_weight(m, at[PARAM_KEY_NORM], qk_norm_width(m, n.kv_heads), 1), &n);
}

static void qk_norm_backward(const struct model *m, size_t l, const struct layer_kept *k,
			     void *dqkv, bool accumulate)
{
	const size_t *at = m->layer[l].at;
	const struct qk_norm n = qk_norm_of(m, row_count(m));

	m->backend->qk_norm_backward(
		m->device, dqkv, model_grad(m, at[PARAM_QUERY_NORM]),
		model_grad(m, at[PARAM_KEY_NORM]), k->raw, k->qk_rstd,
		norm_weight(m, at[PARAM_QUERY_NORM], qk_norm_width(m, n.heads), 0),
		norm_weight(m, at[PARAM_KEY_NORM], qk_norm_width(m, n.kv_heads), 1), &n,
		accumulate);
}

static const float *rope_of(const struct model *m, size_t l, const struct layer_shared *s)
{
	return model_slides(&m->shape, l) ? s->local_rope : s->rope;
}

/* Query, key and value, turned. */
static void project(const struct model *m, size_t l, const struct layer_kept *k,
		    const struct layer_shared *s)
{
	struct attention turned = attention_of(m, l, s);
	const struct linear qkv = qkv_of(m, l);
	void *rows = model_row(m, k->qkv, s->first, qkv.out);

	const void *in = split_gather(m, s->gathered, k->attention_in, s->rows, m->shape.dim);

	linear_forward(m, &qkv, k->raw ? k->raw : rows, in, s->rows, 0);
	if (k->raw)
		qk_norm_forward(m, l, k, rows, s->rows);
	if (s->rows < row_count(m))
		turned.seq = s->rows;
	if (!m->family->learned_positions)
		m->backend->rope(m->device, rows,
				 rope_of(m, l, s) + s->first * model_turned(&m->shape), &turned,
				 false);
}

static void attend(const struct model *m, size_t l, const struct layer_kept *k,
		   const struct layer_shared *s)
{
	struct attention shape = attention_of(m, l, s);

	if (s->rows < row_count(m)) {
		shape.queries = s->rows;
		shape.first = s->first;
	}
	if (context_is_shared(m))
		context_attend(m, k, s, &shape);
	else
		m->backend->attention_forward(m->device, k->attended, k->lse, k->qkv, &shape);
}

/* A bias of the stream is added once, by the first of those that hold the model together. */
static void once(const struct model *m, struct linear *w)
{
	if (m->options.split.rank > 0)
		w->bias = ABSENT;
}

/* s->delta = what a half gave, normed, where a norm stands behind it; else it lies there
 * already. */
static void post_forward(const struct model *m, size_t l, enum param weight, const void *in,
			 const struct norm_kept *kept, const struct layer_shared *s)
{
	if (in)
		norm_forward(m, m->layer[l].at[weight], ABSENT, kept, s->delta, NULL, in, NULL,
			     s->rows);
}

/* What attention adds to the stream, into s->delta. Side by side, the other half comes to it
 * first. */
static void project_out(const struct model *m, size_t l, const struct layer_kept *k,
			const struct layer_shared *s)
{
	struct linear out = out_of(m, l);

	once(m, &out);
	linear_forward(m, &out, k->post1_in ? k->post1_in : s->delta,
		       model_row(m, k->attended, s->first, out.in), s->rows, 0);
	if (!m->family->parallel)
		split_reduce(m, s, s->delta, s->delta, s->rows, m->shape.dim);
	post_forward(m, l, PARAM_POST1, k->post1_in, &k->post1, s);
}

/* Whether all tokens see a feed-forward there. */
static bool has_dense(const struct model *m, size_t l)
{
	return model_ffn_width(&m->shape, l) > 0;
}

static void activate_dense(const struct model *m, size_t l, const struct layer_kept *k, size_t rows)
{
	size_t width = model_ffn_width(&m->shape, l);

	if (m->family->gelu_gate)
		m->backend->geglu_forward(m->device, k->hidden, k->up, rows, width);
	else if (m->family->gated)
		m->backend->swiglu_forward(m->device, k->hidden, k->up, rows, width);
	else
		m->backend->gelu_forward(m->device, k->hidden, k->up, rows * width,
					 m->family->gelu);
}

static void activate(const struct model *m, size_t l, const struct layer_kept *k, size_t rows)
{
	if (has_dense(m, l))
		activate_dense(m, l, k, rows);
	if (model_is_sparse(&m->shape, l))
		experts_activate(m, k, rows);
}

/* goes_on: what comes of it is read by contract() next. */
static void expand_dense(const struct model *m, size_t l, const struct layer_kept *k,
			 const struct layer_shared *s, bool goes_on)
{
	const void *in = split_gather(m, s->gathered, k->ffn_in, s->rows, m->shape.dim);
	struct linear up = up_of(m, l), down = down_of(m, l);

	if (!m->family->gated) {
		up.kept = k->up;
		if (goes_on)
			linear_expect_input(m, &down, k->hidden, s->rows);
		linear_forward(m, &up, k->hidden, in, s->rows, 0);
		return;
	}
	linear_forward(m, &up, k->up, in, s->rows, 0);
	if (goes_on)
		linear_expect_input(m, &down, k->hidden, s->rows);
	activate_dense(m, l, k, s->rows);
}

static void expand(const struct model *m, size_t l, const struct layer_kept *k,
		   const struct layer_shared *s, bool goes_on)
{
	if (has_dense(m, l))
		expand_dense(m, l, k, s, goes_on && !model_is_sparse(&m->shape, l));
	if (model_is_sparse(&m->shape, l))
		experts_expand(m, l, k, s);
}

static void contract_dense(const struct model *m, size_t l, const struct layer_kept *k,
			   const struct layer_shared *s)
{
	struct linear down = down_of(m, l);

	once(m, &down);
	/* Side by side, attention's part is in delta already. */
	linear_forward(m, &down, k->post2_in ? k->post2_in : s->delta, k->hidden, s->rows,
		       m->family->parallel ? 1 : 0);
	split_reduce(m, s, s->delta, s->delta, s->rows, m->shape.dim);
	post_forward(m, l, PARAM_POST2, k->post2_in, &k->post2, s);
}

static void contract(const struct model *m, size_t l, const struct layer_kept *k,
		     const struct layer_shared *s)
{
	if (has_dense(m, l))
		contract_dense(m, l, k, s);
	if (model_is_sparse(&m->shape, l))
		experts_contract(m, l, k, s, has_dense(m, l));
}

/* --- forward ---------------------------------------------------------------------------------- */

/* x = before + delta where there is a delta; and normed, where a norm stands there. */
static void norm1_forward(const struct model *m, size_t l, const struct layer_kept *k,
			  const void *before, const void *delta, size_t rows)
{
	const size_t *at = m->layer[l].at;

	if (layer_has(m, l, PARAM_NORM1))
		norm_forward(m, at[PARAM_NORM1], at[PARAM_NORM1_BIAS], &k->norm1, k->attention_in,
			     delta ? k->x : NULL, before, delta, rows);
	else if (delta)
		add_rows(m, k->x, before, delta, rows);
}

/* In sequence, delta is what attention adds: middle = x + delta. NULL: middle as it stands. */
static void norm2_forward(const struct model *m, size_t l, const struct layer_kept *k,
			  const void *delta, size_t rows)
{
	const size_t *at = m->layer[l].at;
	bool sum = delta && !m->family->parallel;
	const void *x = sum ? k->x : layer_stream(m, k);

	if (layer_has(m, l, PARAM_NORM2))
		norm_forward(m, at[PARAM_NORM2], at[PARAM_NORM2_BIAS], &k->norm2, k->ffn_in,
			     sum ? k->middle : NULL, x, sum ? delta : NULL, rows);
	else if (sum)
		add_rows(m, k->middle, x, delta, rows);
}

const void *layer_stream(const struct model *m, const struct layer_kept *k)
{
	return m->family->parallel ? k->x : k->middle;
}

void layer_forward(const struct model *m, size_t l, const struct layer_kept *k,
		   const struct layer_shared *s, const void *before)
{
	const struct linear qkv = qkv_of(m, l), up = up_of(m, l);
	size_t rows = split_rows(m, s->rows);

	linear_expect_input(m, &qkv, k->attention_in, rows);
	norm1_forward(m, l, k, before ? before : k->x, before ? s->delta : NULL, rows);
	project(m, l, k, s);
	attend(m, l, k, s);
	project_out(m, l, k, s);
	/* a GELU behind the next product makes more of that product's result than its norm could */
	if (m->family->gated && !model_is_sparse(&m->shape, l))
		linear_expect_input(m, &up, k->ffn_in, rows);
	norm2_forward(m, l, k, s->delta, rows);
	if (model_is_sparse(&m->shape, l))
		experts_route(m, l, k, s);
	expand(m, l, k, s, true);
	contract(m, l, k, s);
}

unsigned layer_lacks(const struct model *m, size_t l)
{
	const struct model_options *o = &m->options;

	return o->again | (l < o->more_layers ? o->more : 0);
}

void layer_again(const struct model *m, size_t l, const struct layer_kept *k,
		 const struct layer_shared *s)
{
	unsigned lacks = layer_lacks(m, l);
	bool middle = (lacks & AGAIN_MIDDLE) && !m->family->parallel;
	size_t rows = split_rows(m, s->rows);

	if (lacks & AGAIN_NORMED)
		norm1_forward(m, l, k, k->x, NULL, rows);
	if (lacks & AGAIN_QKV)
		project(m, l, k, s);
	if (lacks & AGAIN_ATTENDED)
		attend(m, l, k, s);
	if (middle)
		project_out(m, l, k, s);
	if (middle || (lacks & AGAIN_NORMED))
		norm2_forward(m, l, k, middle ? s->delta : NULL, rows);
	if (lacks & AGAIN_UP)
		expand(m, l, k, s, false);
	else if (lacks & AGAIN_HIDDEN)
		activate(m, l, k, s->rows);
}

/* --- backward --------------------------------------------------------------------------------- */

/* The gradient of what a half gave: s->dx, or that through the norm behind it, in s->delta. */
static const void *post_backward(const struct model *m, size_t l, enum param weight, const void *in,
				 const struct norm_kept *kept, const struct layer_shared *s,
				 bool accumulate)
{
	if (!in)
		return s->dx;
	m->backend->zero(m->device, s->delta,
			 row_count(m) * m->shape.dim * compute_bytes(m->options.compute));
	norm_backward(m, m->layer[l].at[weight], ABSENT, kept, s->delta, s->dx, in, accumulate);
	return s->delta;
}

/* s->dx += what comes back through a half, by the norm in front of it, where there is one. */
static void pre_backward(const struct model *m, size_t l, enum param weight, enum param bias,
			 const struct norm_kept *kept, const void *dnormed, const void *x,
			 const struct layer_shared *s, bool accumulate)
{
	const size_t *at = m->layer[l].at;

	if (layer_has(m, l, weight))
		norm_backward(m, at[weight], at[bias], kept, s->dx, dnormed, x, accumulate);
	else
		add_rows(m, s->dx, s->dx, dnormed, row_count(m));
}

/* From s->dx, the gradient of what this half adds, to that of its normed input. */
static void dense_backward(const struct model *m, size_t l, const struct layer_kept *k,
			   const struct layer_shared *s, void *dnormed, bool accumulate)
{
	const struct linear up = up_of(m, l);
	struct linear down = down_of(m, l);
	size_t rows = row_count(m), width = model_ffn_width(&m->shape, l), dim = m->shape.dim;
	const void *dup = m->family->gated ? k->up : s->dhidden;
	const void *dy = post_backward(m, l, PARAM_POST2, k->post2_in, &k->post2, s, accumulate);
	const void *dout = split_gather(m, s->dgathered, dy, rows, dim);
	const void *in = split_gather(m, s->gathered, k->ffn_in, rows, dim);

	linear_backward_weight(m, &down, dout, k->hidden, rows, accumulate);
	down.kept = m->family->gated ? NULL : k->up;
	if (!m->family->gated)
		linear_expect_gradient(m, &up, dup, in, rows);
	linear_backward_input(m, &down, s->dhidden, dout, rows);
	if (m->family->gated)
		linear_expect_gradient(m, &up, dup, in, rows);
	if (m->family->gelu_gate)
		m->backend->geglu_backward(m->device, k->up, s->dhidden, k->up, rows, width);
	else if (m->family->gated)
		m->backend->swiglu_backward(m->device, k->up, s->dhidden, k->up, rows, width);
	linear_backward_weight(m, &up, dup, in, rows, accumulate);
	linear_backward_input(m, &up, dnormed, dup, rows);
	backend_join(m->backend, m->device);
	split_reduce(m, s, dnormed, dnormed, rows, dim);
}

static void ffn_backward(const struct model *m, size_t l, const struct layer_kept *k,
			 const struct layer_shared *s, void *dnormed, bool accumulate)
{
	if (has_dense(m, l))
		dense_backward(m, l, k, s, dnormed, accumulate);
	if (model_is_sparse(&m->shape, l))
		experts_backward(m, l, k, s, dnormed, has_dense(m, l), accumulate);
}

static void attention_backward(const struct model *m, size_t l, const struct layer_kept *k,
			       const struct layer_shared *s, void *dnormed, bool accumulate)
{
	const struct attention shape = attention_of(m, l, s);
	const struct linear qkv = qkv_of(m, l), out = out_of(m, l);
	size_t rows = row_count(m), dim = m->shape.dim;
	const void *dy = post_backward(m, l, PARAM_POST1, k->post1_in, &k->post1, s, accumulate);
	const void *dout = split_gather(m, s->dgathered, dy, rows, dim);
	const void *in = split_gather(m, s->gathered, k->attention_in, rows, dim);

	linear_backward_weight(m, &out, dout, k->attended, rows, accumulate);
	linear_backward_input(m, &out, s->dattended, dout, rows);
	const float *table = m->family->learned_positions ? NULL : rope_of(m, l, s);
	if (!k->raw && !context_is_shared(m))
		linear_expect_gradient(m, &qkv, s->dqkv, in, rows);
	if (context_is_shared(m))
		context_backward(m, k, s, table, &shape);
	else
		m->backend->attention_backward(m->device, s->dqkv, s->dattended, k->attended,
					       k->lse, k->qkv, table, &shape);
	if (k->raw)
		qk_norm_backward(m, l, k, s->dqkv, accumulate);
	linear_backward_weight(m, &qkv, s->dqkv, in, rows, accumulate);
	linear_backward_input(m, &qkv, dnormed, s->dqkv, rows);
	backend_join(m->backend, m->device);
	split_reduce(m, s, dnormed, dnormed, rows, dim);
}

void layer_backward(const struct model *m, size_t l, const struct layer_kept *k,
		    const struct layer_shared *s, bool accumulate)
{
	/* Side by side, both halves need dx before either norm adds to it. */
	void *dnormed = m->family->parallel ? s->delta : s->dnormed;

	ffn_backward(m, l, k, s, s->dnormed, accumulate);
	if (m->family->parallel)
		attention_backward(m, l, k, s, dnormed, accumulate);
	pre_backward(m, l, PARAM_NORM2, PARAM_NORM2_BIAS, &k->norm2, s->dnormed, layer_stream(m, k),
		     s, accumulate);
	if (!m->family->parallel)
		attention_backward(m, l, k, s, dnormed, accumulate);
	pre_backward(m, l, PARAM_NORM1, PARAM_NORM1_BIAS, &k->norm1, dnormed, k->x, s, accumulate);
}
