/* SPDX-License-Identifier: MIT */
/* attention.c - causal softmax(c q k^T) v with grouped key/value heads, and its gradient; c is the
 * scale of the scores, 1/sqrt(C) unless the caller wants another.
 *
 *   s_ij = c q_i . k_j for j <= i;  lse_i = log sum_j e^(s_ij);  p_ij = e^(s_ij - lse_i)
 *   out_i = sum_j p_ij v_j
 *   dv_j += p_ij dout_i;  dp_ij = dout_i . v_j;  ds_ij = p_ij (dp_ij - dout_i . out_i)
 *   dq_i = c sum_j ds_ij k_j;  dk_j += c ds_ij q_i
 *
 * The T x T matrix is never stored: a row of scores lives in scratch and backward computes it
 * again from lse. Keys (and values, in backward) are transposed once per head, so that every inner
 * loop runs along memory. Forward: a task is one (batch, query head). Backward: a task is one
 * (batch, key/value head) with all query heads that share it, in order, so dk and dv need no
 * lock. */
#include "kernels/cpu/cpu.h"

#include <math.h>

struct heads {
	struct attention a;
	float *out, *lse, *dqkv;
	const float *qkv, *dout, *saved_out, *saved_lse;
	char **scratch;
	size_t row_floats; /* of qkv */
	float scale;
};

/* to[0..width) += sum over n of coef[n] * rows[n*stride + 0..width), four rows at a time. */
CPU_INLINE void mix(float *restrict to, const float *restrict coef, const float *restrict rows,
		    size_t stride, size_t count, size_t width)
{
	size_t n = 0;

	for (; n + 4 <= count; n += 4) {
		const float *r0 = rows + n * stride, *r1 = r0 + stride;
		const float *r2 = r1 + stride, *r3 = r2 + stride;
		float c0 = coef[n], c1 = coef[n + 1], c2 = coef[n + 2], c3 = coef[n + 3];
		for (size_t i = 0; i < width; i++)
			to[i] += (c0 * r0[i] + c1 * r1[i]) + (c2 * r2[i] + c3 * r3[i]);
	}
	for (; n < count; n++)
		for (size_t i = 0; i < width; i++)
			to[i] += coef[n] * rows[n * stride + i];
}

/* rows[n*stride + 0..width) += coef[n] * from[0..width) */
CPU_INLINE void spread(float *restrict rows, size_t stride, const float *restrict coef,
		       const float *restrict from, size_t count, size_t width)
{
	for (size_t n = 0; n < count; n++)
		for (size_t i = 0; i < width; i++)
			rows[n * stride + i] += coef[n] * from[i];
}

/* to[C][T] from T rows of C */
CPU_INLINE void transpose(float *restrict to, const float *restrict from, size_t stride, size_t seq,
			  size_t dim)
{
	for (size_t t = 0; t < seq; t++)
		for (size_t d = 0; d < dim; d++)
			to[d * seq + t] = from[t * stride + d];
}

CPU_INLINE void fill(float *to, float value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = value;
}

/* Turns scores into e^(s*scale - max) and returns their sum through *sum; the maximum is given
 * back so that lse = max + log(sum). */
CPU_INLINE float softmax_row(float *s, size_t count, float scale, float *sum)
{
	float max = s[0] * scale, total = 0;

	for (size_t j = 0; j < count; j++) {
		s[j] *= scale;
		max = s[j] > max ? s[j] : max;
	}
	for (size_t j = 0; j < count; j++)
		s[j] = cpu_exp(s[j] - max);
	for (size_t j = 0; j < count; j++)
		total += s[j];
	*sum = total;
	return max;
}

static void attention_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct heads *w = args;
	const struct attention *a = &w->a;
	size_t dim = a->head_dim, seq = a->seq, stride = w->row_floats;
	size_t batch = index / a->heads, head = index % a->heads;
	size_t kv = head / (a->heads / a->kv_heads);
	const struct cpu_heads at = cpu_heads(a);
	const float *rows = w->qkv + batch * seq * stride;
	const float *q = rows + at.query + head * at.step;
	const float *k = rows + at.key + kv * at.step;
	const float *v = rows + at.value + kv * at.step;
	float *keys = (float *)(void *)w->scratch[worker]; /* [C,T] */
	float *p = keys + dim * seq;                       /* [T] */

	transpose(keys, k, stride, seq, dim);
	for (size_t i = 0; i < seq; i++) {
		float *out = w->out + ((batch * seq + i) * a->heads + head) * dim;
		float sum;
		fill(p, 0, i + 1);
		mix(p, q + i * stride, keys, seq, dim, i + 1);
		float max = softmax_row(p, i + 1, w->scale, &sum);
		w->lse[index * seq + i] = max + logf(sum);
		fill(out, 0, dim);
		mix(out, p, v, stride, i + 1, dim);
		for (size_t d = 0; d < dim; d++)
			out[d] /= sum;
	}
}

static float scale_of(const struct attention *a)
{
	return a->scale != 0.0f ? a->scale : 1.0f / sqrtf((float)a->head_dim);
}

void cpu_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			   const struct attention *a)
{
	struct heads w = { .a = *a, .out = out, .lse = lse, .qkv = qkv };

	if (!cpu_scratch(dev, (a->head_dim + 1) * a->seq * sizeof(float)))
		return;
	w.scratch = dev->scratch;
	w.row_floats = (a->heads + 2 * a->kv_heads) * a->head_dim;
	w.scale = scale_of(a);
	pool_run(dev->pool, a->batch * a->heads, attention_forward_task, &w);
}

/* Where one (batch, query head) of the backward pass finds everything. */
struct grads {
	const float *q, *k, *dout, *out, *lse;
	float *dq, *dk, *dv;
	const float *keys, *values; /* transposed, [C,T] */
	float *p, *dp;              /* [T] */
	size_t stride, out_stride, seq, dim;
	float scale;
};

CPU_INLINE void backward_row(const struct grads *g, size_t i)
{
	const float *q = g->q + i * g->stride;
	const float *dout = g->dout + i * g->out_stride;
	size_t seen = i + 1;

	fill(g->p, 0, seen);
	mix(g->p, q, g->keys, g->seq, g->dim, seen);
	for (size_t j = 0; j < seen; j++)
		g->p[j] = cpu_exp(g->p[j] * g->scale - g->lse[i]);
	spread(g->dv, g->stride, g->p, dout, seen, g->dim);

	float row = cpu_dot(dout, g->out + i * g->out_stride, g->dim);
	fill(g->dp, 0, seen);
	mix(g->dp, dout, g->values, g->seq, g->dim, seen);
	for (size_t j = 0; j < seen; j++)
		g->dp[j] = g->p[j] * (g->dp[j] - row) * g->scale;
	spread(g->dk, g->stride, g->dp, q, seen, g->dim);
	mix(g->dq + i * g->stride, g->dp, g->k, g->stride, seen, g->dim);
}

static void attention_backward_task(const void *args, size_t index, unsigned worker)
{
	const struct heads *w = args;
	const struct attention *a = &w->a;
	size_t dim = a->head_dim, seq = a->seq, stride = w->row_floats;
	size_t batch = index / a->kv_heads, kv = index % a->kv_heads;
	size_t group = a->heads / a->kv_heads;
	const struct cpu_heads heads = cpu_heads(a);
	size_t at = batch * seq * stride, key = at + heads.key + kv * heads.step;
	size_t value = at + heads.value + kv * heads.step, query = at + heads.query;
	float *keys = (float *)(void *)w->scratch[worker];
	float *values = keys + dim * seq;
	struct grads g = {
		.k = w->qkv + key,
		.dk = w->dqkv + key,
		.dv = w->dqkv + value,
		.keys = keys,
		.values = values,
		.p = values + dim * seq,
		.dp = values + (dim + 1) * seq,
		.stride = stride,
		.out_stride = a->heads * dim,
		.seq = seq,
		.dim = dim,
		.scale = w->scale,
	};

	transpose(keys, w->qkv + key, stride, seq, dim);
	transpose(values, w->qkv + value, stride, seq, dim);
	for (size_t i = 0; i < seq; i++) {
		for (size_t head = kv * group; head < (kv + 1) * group; head++)
			fill(w->dqkv + query + i * stride + head * heads.step, 0, dim);
		fill(g.dk + i * stride, 0, dim);
		fill(g.dv + i * stride, 0, dim);
	}
	for (size_t head = kv * group; head < (kv + 1) * group; head++) {
		size_t out = batch * seq * g.out_stride + head * dim;
		g.q = w->qkv + query + head * heads.step;
		g.dq = w->dqkv + query + head * heads.step;
		g.dout = w->dout + out;
		g.out = w->saved_out + out;
		g.lse = w->saved_lse + (batch * a->heads + head) * seq;
		for (size_t i = 0; i < seq; i++)
			backward_row(&g, i);
	}
}

void cpu_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
			    const float *lse, const void *qkv, const struct attention *a)
{
	struct heads w = {
		.a = *a, .dqkv = dqkv, .qkv = qkv, .dout = dout, .saved_out = out, .saved_lse = lse
	};

	if (!cpu_scratch(dev, 2 * (a->head_dim + 1) * a->seq * sizeof(float)))
		return;
	w.scratch = dev->scratch;
	w.row_floats = (a->heads + 2 * a->kv_heads) * a->head_dim;
	w.scale = scale_of(a);
	pool_run(dev->pool, a->batch * a->kv_heads, attention_backward_task, &w);
}
