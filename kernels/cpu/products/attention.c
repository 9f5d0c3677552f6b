/* SPDX-License-Identifier: MIT */
/* attention.c - causal softmax(c q k^T) v with grouped key/value heads; c is the scale of the
 * scores, 1/sqrt(C) unless the caller wants another.
 *
 *   s_ij = c q_i . k_j for j <= i;  lse_i = log sum_j e^(s_ij);  p_ij = e^(s_ij - lse_i)
 *   out_i = sum_j p_ij v_j
 *
 * A window, documents (begin) and a softcap of the scores: struct attention. Keys before the first
 * that a stripe's queries see cost nothing.
 *
 * The T x T matrix is never stored: after Dao et al. 2022 it is made a piece at a time, here the
 * scores of a stripe of queries, which stay in the second cache until they have met the values. A
 * task is one (batch, query head). */
#include "kernels/cpu/products/attention.h"

#include <math.h>

struct heads {
	struct attention a;
	float *out, *lse;
	const float *qkv;
	char **scratch;
	size_t row_floats; /* of qkv */
};

/* One task's memory. */
struct head {
	size_t dim, width;
	float *keys, *values; /* [T,width], keys times c */
	float *query_rows;    /* the stripe's, [STRIPE,width] */
	float *queries;       /* and [C,STRIPE] */
	float *scores;        /* [T,STRIPE], then e^(s - max) */
	float *out;           /* [STRIPE,width] */
};

/* Lays the head out from `scratch` on, NULL to count; floats that takes. */
static size_t lay_out(struct head *h, const struct attention *a, float *scratch)
{
	size_t seq = cpu_round_up(a->seq, STRIPE);
	size_t width = cpu_round_up(a->head_dim, CPU_LANES);
	const struct scratch_part parts[] = {
		{ &h->keys, seq * width },          { &h->values, seq * width },
		{ &h->query_rows, STRIPE * width }, { &h->queries, a->head_dim * STRIPE },
		{ &h->scores, seq * STRIPE },       { &h->out, STRIPE * width },
	};

	h->dim = a->head_dim;
	h->width = width;
	return scratch_parts(parts, sizeof(parts) / sizeof(parts[0]), scratch);
}

static void cap_scores(float *scores, const struct keys *k, float cap)
{
	float inverse = 1.0f / cap;

	for (size_t j = k->from; j < k->seen; j++)
		for (size_t q = stripe_blind(j, k->first); q < STRIPE; q++)
			scores[j * STRIPE + q] = cap * cpu_tanh(scores[j * STRIPE + q] * inverse);
}

/* Turns scores into e^(s - max) down each column; max and sum of each. */
static void softmax(float *scores, const struct keys *k, const size_t *begins, float max[STRIPE],
		    float sum[STRIPE])
{
	for (size_t q = 0; q < STRIPE; q++) {
		max[q] = -INFINITY;
		sum[q] = 0;
	}
	for (size_t j = k->from; j < k->seen; j++) {
		float *row = scores + j * STRIPE;
		stripe_hide(row, j, k, begins, -INFINITY);
#pragma omp simd
		for (size_t q = 0; q < STRIPE; q++)
			max[q] = row[q] > max[q] ? row[q] : max[q];
	}
	for (size_t j = k->from; j < k->seen; j++) {
		float *row = scores + j * STRIPE;
#pragma omp simd
		for (size_t q = 0; q < STRIPE; q++) {
			row[q] = attention_exp(row[q] - max[q]);
			sum[q] += row[q];
		}
	}
}

/* `count` queries from `first` on; out and lse are those of the first of them. */
static void stripe_forward(const struct head *h, const struct sight *sight, size_t first,
			   size_t count, float *out, size_t out_stride, float *lse)
{
	size_t room[STRIPE];
	const size_t *begins = sight_begins(sight, first, count, room);
	const struct keys k = { sight_from(begins), first + count, first };
	float max[STRIPE], sum[STRIPE];

	stripe_scores(h->scores, h->keys, h->queries, &k, h->dim, h->width);
	if (sight->softcap > 0)
		cap_scores(h->scores, &k, sight->softcap);
	softmax(h->scores, &k, begins, max, sum);
	stripe_gather(h->out, h->scores, h->values, &k, h->width);
	for (size_t q = 0; q < count; q++) {
		lse[q] = max[q] + logf(sum[q]);
		sum[q] = 1.0f / sum[q];
	}
	rows_give(out, out_stride, h->out, h->width, count, h->dim, sum, 1.0f);
}

static void attention_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct heads *w = args;
	const struct attention *a = &w->a;
	size_t dim = a->head_dim, stride = w->row_floats, width = a->heads * dim;
	size_t from[2], to[2];
	int ranges = attention_ranges(a, from, to);
	size_t all = to[ranges - 1];
	size_t batch = index / a->heads, head = index % a->heads;
	size_t kv = head / (a->heads / a->kv_heads);
	const struct cpu_heads at = cpu_heads(a);
	const float *rows = w->qkv + batch * a->seq * stride;
	const float *key = rows + at.key + kv * at.step, *value = rows + at.value + kv * at.step;
	const float *query = rows + at.query + head * at.step;
	const struct sight sight = sight_of(a, batch);
	struct head h;

	lay_out(&h, a, (float *)(void *)w->scratch[worker]);
	rows_take(h.keys, h.width, key, stride, all, dim, attention_scale(a));
	rows_take(h.values, h.width, value, stride, all, dim, 1.0f);
	for (int r = 0; r < ranges; r++)
		for (size_t first = from[r] / STRIPE * STRIPE; first < to[r]; first += STRIPE) {
			size_t count = cpu_min(STRIPE, to[r] - first);
			stripe_take(h.query_rows, h.queries, query + first * stride, stride, count,
				    dim, h.width);
			stripe_forward(&h, &sight, first, count,
				       w->out + (batch * a->seq + first) * width + head * dim,
				       width, w->lse + index * a->seq + first);
		}
}

void cpu_attention_forward(struct device *dev, void *out, float *lse, const void *qkv,
			   const struct attention *a)
{
	struct heads w = { .a = *a, .out = out, .lse = lse, .qkv = qkv };
	struct head h;

	if (!cpu_scratch(dev, lay_out(&h, a, NULL) * sizeof(float)))
		return;
	w.scratch = dev->scratch;
	w.row_floats = (a->heads + 2 * a->kv_heads) * a->head_dim;
	pool_run(dev->pool, a->batch * a->heads, attention_forward_task, &w);
}
