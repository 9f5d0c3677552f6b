/* SPDX-License-Identifier: MIT */
/* attention_backward.c - the gradient of attention (attention.c has the formulas and the names).
 *
 *   dv_j += p_ij dout_i;  dp_ij = dout_i . v_j;  ds_ij = p_ij (dp_ij - dout_i . out_i)
 *   dq_i = c sum_j ds_ij k_j;  dk_j += c ds_ij q_i
 *
 * p is made again from lse, a stripe of queries at a time. A task is one (batch, key/value head)
 * with all query heads that share it, in order, so that dk and dv need no lock. */
#include "kernels/cpu/products/attention.h"

#include <math.h>

struct heads {
	struct attention a;
	float *dqkv;
	const float *qkv, *dout, *out, *lse;
	char **scratch;
	size_t row_floats; /* of qkv */
};

/* One task's memory. */
struct head {
	size_t seq, dim, width;
	float *keys, *values;          /* [T,width], keys times c */
	float *queries, *dout;         /* the stripe's, [C,STRIPE] */
	float *query_rows, *dout_rows; /* and [STRIPE,width] */
	float *p, *ds;                 /* [T,STRIPE] */
	float *dq;                     /* [STRIPE,width] */
	float *dk, *dv;                /* [T,width], dk still to be multiplied by c */
};

/* Lays the head out from `scratch` on, NULL to count; floats that takes. */
static size_t lay_out(struct head *h, const struct attention *a, float *scratch)
{
	size_t seq = cpu_round_up(a->seq, STRIPE), dim = a->head_dim;
	size_t width = cpu_round_up(dim, CPU_LANES);
	const struct scratch_part parts[] = {
		{ &h->keys, seq * width },
		{ &h->values, seq * width },
		{ &h->queries, dim * STRIPE },
		{ &h->dout, dim * STRIPE },
		{ &h->query_rows, STRIPE * width },
		{ &h->dout_rows, STRIPE * width },
		{ &h->p, seq * STRIPE },
		{ &h->ds, seq * STRIPE },
		{ &h->dq, STRIPE * width },
		{ &h->dk, seq * width },
		{ &h->dv, seq * width },
	};

	h->seq = a->seq;
	h->dim = dim;
	h->width = width;
	return scratch_parts(parts, sizeof(parts) / sizeof(parts[0]), scratch);
}

/* Scores become those behind the softcap, and dp - row_dot is multiplied by its slope: both stand
 * in what slopes() makes of them. */
static void cap_slopes(const struct head *h, const struct keys *k, float cap,
		       const float row_dot[STRIPE])
{
	float inverse = 1.0f / cap;

	for (size_t j = k->from; j < k->seen; j++)
		for (size_t q = stripe_blind(j, k->first); q < STRIPE; q++) {
			float *p = h->p + j * STRIPE + q, *ds = h->ds + j * STRIPE + q;
			float t = cpu_tanh(*p * inverse);
			*p = cap * t;
			*ds = (*ds - row_dot[q]) * (1.0f - t * t) + row_dot[q];
		}
}

/* p from scores, ds from dp, in place; row_dot[q] = dout_q . out_q. */
static void slopes(const struct head *h, const struct keys *k, const size_t *begins,
		   const float lse[STRIPE], const float row_dot[STRIPE])
{
	for (size_t j = k->from; j < k->seen; j++) {
		float *restrict p = h->p + j * STRIPE, *restrict ds = h->ds + j * STRIPE;
		stripe_hide(p, j, k, begins, -INFINITY);
		stripe_hide(ds, j, k, begins, 0);
#pragma omp simd
		for (size_t q = 0; q < STRIPE; q++) {
			p[q] = attention_exp(p[q] - lse[q]);
			ds[q] = p[q] * (ds[q] - row_dot[q]);
		}
	}
}

/* What a query head hands in and gets back, all of query 0; rows `stride` apart. */
struct query_head {
	const float *q, *dout, *out, *lse;
	float *dq;
	size_t stride, out_stride;
};

static void stripe_backward(const struct head *h, const struct query_head *w,
			    const struct sight *sight, size_t first, size_t count)
{
	size_t room[STRIPE];
	const size_t *begins = sight_begins(sight, first, count, room);
	const struct keys k = { sight_from(begins), first + count, first };
	float lse[STRIPE] = { 0 }, row_dot[STRIPE] = { 0 };

	stripe_take(h->query_rows, h->queries, w->q + first * w->stride, w->stride, count, h->dim,
		    h->width);
	stripe_take(h->dout_rows, h->dout, w->dout + first * w->out_stride, w->out_stride, count,
		    h->dim, h->width);
	for (size_t i = 0; i < count; i++) {
		lse[i] = w->lse[first + i];
		row_dot[i] = cpu_dot(w->dout + (first + i) * w->out_stride,
				     w->out + (first + i) * w->out_stride, h->dim);
	}
	stripe_scores(h->p, h->keys, h->queries, &k, h->dim, h->width);
	stripe_scores(h->ds, h->values, h->dout, &k, h->dim, h->width);
	if (sight->softcap > 0)
		cap_slopes(h, &k, sight->softcap, row_dot);
	slopes(h, &k, begins, lse, row_dot);
	stripe_scatter(h->dv, h->p, h->dout_rows, &k, h->width);
	stripe_scatter(h->dk, h->ds, h->query_rows, &k, h->width);
	stripe_gather(h->dq, h->ds, h->keys, &k, h->width);
	rows_give(w->dq + first * w->stride, w->stride, h->dq, h->width, count, h->dim, NULL, 1.0f);
}

static void attention_backward_task(const void *args, size_t index, unsigned worker)
{
	const struct heads *w = args;
	const struct attention *a = &w->a;
	size_t seq = a->seq, stride = w->row_floats, out_stride = a->heads * a->head_dim;
	size_t batch = index / a->kv_heads, kv = index % a->kv_heads;
	size_t group = a->heads / a->kv_heads;
	const struct cpu_heads at = cpu_heads(a);
	size_t rows = batch * seq * stride, key = rows + at.key + kv * at.step;
	size_t value = rows + at.value + kv * at.step;
	float scale = attention_scale(a);
	const struct sight sight = sight_of(a, batch);
	size_t from[2], to[2];
	int ranges = attention_ranges(a, from, to);
	struct head h;

	lay_out(&h, a, (float *)(void *)w->scratch[worker]);
	rows_take(h.keys, h.width, w->qkv + key, stride, seq, h.dim, scale);
	rows_take(h.values, h.width, w->qkv + value, stride, seq, h.dim, 1.0f);
	memset(h.dk, 0, seq * h.width * sizeof(float));
	memset(h.dv, 0, seq * h.width * sizeof(float));
	for (size_t head = kv * group; head < (kv + 1) * group; head++) {
		size_t query = rows + at.query + head * at.step;
		size_t out = batch * seq * out_stride + head * a->head_dim;
		const struct query_head q = {
			.q = w->qkv + query,
			.dout = w->dout + out,
			.out = w->out + out,
			.lse = w->lse + (batch * a->heads + head) * seq,
			.dq = w->dqkv + query,
			.stride = stride,
			.out_stride = out_stride,
		};
		for (int r = 0; r < ranges; r++)
			for (size_t first = from[r]; first < to[r]; first += STRIPE)
				stripe_backward(&h, &q, &sight, first,
						cpu_min(STRIPE, to[r] - first));
	}
	rows_give(w->dqkv + key, stride, h.dk, h.width, seq, h.dim, NULL, scale);
	rows_give(w->dqkv + value, stride, h.dv, h.width, seq, h.dim, NULL, 1.0f);
}

void cpu_attention_backward(struct device *dev, void *dqkv, const void *dout, const void *out,
			    const float *lse, const void *qkv, const float *table,
			    const struct attention *a)
{
	struct heads w = {
		.a = *a, .dqkv = dqkv, .qkv = qkv, .dout = dout, .out = out, .lse = lse
	};
	struct head h;

	if (!cpu_scratch(dev, lay_out(&h, a, NULL) * sizeof(float)))
		return;
	w.scratch = dev->scratch;
	w.row_floats = (a->heads + 2 * a->kv_heads) * a->head_dim;
	pool_run(dev->pool, a->batch * a->kv_heads, attention_backward_task, &w);
	if (table)
		cpu_rope(dev, dqkv, table, a, true);
}
