/* SPDX-License-Identifier: MIT */
/* attention_backward.c - the gradient of attention (attention.c has the formulas and the names).
 *
 *   dv_j += p_ij dout_i;  dp_ij = dout_i . v_j;  ds_ij = p_ij (dp_ij - dout_i . out_i)
 *   dq_i = c sum_j ds_ij k_j;  dk_j += c ds_ij q_i
 *
 * p is made again from lse, a stripe of queries at a time. A task is one (batch, key/value head)
 * with all query heads that share it, in order, so that dk and dv need no lock. */
#include "kernels/cpu/products/attention.h"

struct heads {
	struct attention a;
	float *dqkv;
	const float *qkv, *dout, *out, *lse;
	char **scratch;
	size_t row_floats; /* of qkv */
};

/* One task's memory; T and C are padded to whole panels. */
struct head {
	size_t seq, dim, padded;               /* T, C, T padded */
	float *keys, *values;                  /* panels of keys, [T,C]; keys times c */
	float *key_channels;                   /* panels of channels, [C,T]; times c */
	float *queries, *dout;                 /* the stripe's, [C,STRIPE] */
	float *query_channels, *dout_channels; /* panels of channels, [C,STRIPE]; queries times c */
	float *p, *ds;                         /* [T,STRIPE] */
	float *turned;                         /* either of them in panels of keys, [STRIPE,T] */
	float *dq;                             /* [C,STRIPE] */
	float *dk, *dv;                        /* [C,T] */
};

/* Lays the head out from `scratch` on, NULL to count; floats that takes. */
static size_t lay_out(struct head *h, const struct attention *a, float *scratch)
{
	size_t seq = attention_padded(a->seq, STRIPE * 2);
	size_t dim = attention_padded(a->head_dim, PANELS), at = 0;
	struct {
		float **member;
		size_t count;
	} parts[] = {
		{ &h->keys, seq * dim },
		{ &h->values, seq * dim },
		{ &h->key_channels, seq * dim },
		{ &h->queries, dim * STRIPE },
		{ &h->dout, dim * STRIPE },
		{ &h->query_channels, dim * STRIPE },
		{ &h->dout_channels, dim * STRIPE },
		{ &h->p, seq * STRIPE },
		{ &h->ds, seq * STRIPE },
		{ &h->turned, seq * STRIPE },
		{ &h->dq, dim * STRIPE },
		{ &h->dk, seq * dim },
		{ &h->dv, seq * dim },
	};

	h->seq = a->seq;
	h->dim = a->head_dim;
	h->padded = seq;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		*parts[i].member = scratch ? scratch + at : NULL;
		at += attention_padded(parts[i].count, CPU_LANES);
	}
	return at;
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
		size_t blind = stripe_blind(j, k->first), sees = sight_of_key(begins, j);
		for (size_t q = 0; q < blind; q++)
			p[q] = ds[q] = 0;
		for (size_t q = sees; q < STRIPE; q++)
			p[q] = ds[q] = 0;
#pragma omp simd
		for (size_t q = 0; q < STRIPE; q++)
			p[q] = attention_exp(p[q] - lse[q]);
		for (size_t q = 0; q < blind; q++)
			p[q] = 0;
		for (size_t q = sees; q < STRIPE; q++)
			p[q] = 0;
#pragma omp simd
		for (size_t q = 0; q < STRIPE; q++)
			ds[q] = p[q] * (ds[q] - row_dot[q]);
	}
}

/* to[C][T] += channels [C,STRIPE] times the stripe [T,STRIPE], turned; of `count` queries. */
static void add_to_keys(const struct head *h, float *to, const float *channels, float *stripe,
			const struct keys *k, size_t count)
{
	const struct operand rows = { stripe, STRIPE, true };
	const struct stripes s = { .a = channels,
				   .a_depth = STRIPE,
				   .b = h->turned,
				   .b_depth = STRIPE,
				   .c = to + k->from,
				   .ldc = h->padded,
				   .terms = LATER_QUERIES,
				   .first = k->first - k->from };

	pack_right(h->turned, &rows, &(struct piece){ k->from, k->seen - k->from, 0, STRIPE });
	stripes_multiply(&s, h->dim, k->seen - k->from, count, true);
}

/* What a query head hands in and gets back, all of query 0; rows `stride` apart. */
struct query_head {
	const float *q, *dout, *out, *lse;
	float *dq;
	size_t stride, out_stride;
};

static void pack_stripe(const struct head *h, const struct query_head *w, size_t first,
			size_t count, float scale)
{
	const struct operand q = { w->q, w->stride, true }, dout = { w->dout, w->out_stride, true };
	const struct operand q_channels = { w->q + first * w->stride, w->stride, false };
	const struct operand dout_channels = { w->dout + first * w->out_stride, w->out_stride,
					       false };
	const struct piece queries = { first, count, 0, h->dim };

	pack_right(h->queries, &q, &queries);
	pack_right(h->dout, &dout, &queries);
	/* Panels as deep as a whole stripe. */
	for (size_t d = 0; d < h->dim; d += MICRO_ROWS) {
		const struct piece panel = { d, cpu_min(MICRO_ROWS, h->dim - d), 0, count };
		pack_left(h->query_channels + d * STRIPE, &q_channels, &panel, scale);
		pack_left(h->dout_channels + d * STRIPE, &dout_channels, &panel, 1.0f);
	}
}

static void stripe_backward(const struct head *h, const struct query_head *w,
			    const struct sight *sight, size_t first, size_t count, float scale)
{
	size_t room[STRIPE];
	const size_t *begins = sight_begins(sight, first, count, room);
	const struct keys k = { sight_from(begins), first + count, first };
	float lse[STRIPE] = { 0 }, row_dot[STRIPE] = { 0 };
	const struct stripes dq = { .a = h->key_channels,
				    .a_depth = h->seq,
				    .b = h->ds,
				    .b_is_stripe = true,
				    .c = h->dq,
				    .ldc = STRIPE,
				    .terms = PAST_KEYS,
				    .first = first,
				    .from = k.from };

	for (size_t i = 0; i < count; i++) {
		lse[i] = w->lse[first + i];
		row_dot[i] = cpu_dot(w->dout + (first + i) * w->out_stride,
				     w->out + (first + i) * w->out_stride, h->dim);
	}
	pack_stripe(h, w, first, count, scale);
	stripe_scores(h->p, h->keys, h->queries, &k, h->dim);
	stripe_scores(h->ds, h->values, h->dout, &k, h->dim);
	if (sight->softcap > 0)
		cap_slopes(h, &k, sight->softcap, row_dot);
	slopes(h, &k, begins, lse, row_dot);
	add_to_keys(h, h->dv, h->dout_channels, h->p, &k, count);
	add_to_keys(h, h->dk, h->query_channels, h->ds, &k, count);
	stripes_multiply(&dq, h->dim, STRIPE, k.seen, false);
	stripe_turn(w->dq + first * w->stride, w->stride, h->dq, STRIPE, count, h->dim, NULL);
}

static void pack_keys(const struct head *h, const float *key, const float *value, size_t stride,
		      float scale)
{
	const struct operand keys = { key, stride, true }, values = { value, stride, true };
	const struct operand channels = { key, stride, false };
	const struct piece by_key = { 0, h->seq, 0, h->dim }, by_channel = { 0, h->dim, 0, h->seq };

	pack_left(h->keys, &keys, &by_key, scale);
	pack_left(h->values, &values, &by_key, 1.0f);
	pack_left(h->key_channels, &channels, &by_channel, scale);
	memset(h->dk, 0, h->dim * h->padded * sizeof(float));
	memset(h->dv, 0, h->dim * h->padded * sizeof(float));
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
	pack_keys(&h, w->qkv + key, w->qkv + value, stride, scale);
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
						cpu_min(STRIPE, to[r] - first), scale);
	}
	stripe_turn(w->dqkv + key, stride, h.dk, h.padded, seq, h.dim, NULL);
	stripe_turn(w->dqkv + value, stride, h.dv, h.padded, seq, h.dim, NULL);
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
