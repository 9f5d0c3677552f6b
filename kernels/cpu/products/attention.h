/* SPDX-License-Identifier: MIT */
/* attention.h - what both directions of attention share: stripes of queries.
 *
 * A stripe is STRIPE queries of one head. Its scores and what comes of them stand a row for each
 * key with a column for each query: each query's softmax runs down a column, sixteen of them side
 * by side. Columns behind the last query hold anything, and nobody looks at them. All else stands
 * as outside, a row of channels for each key or query, `width` floats apart (dim up to whole
 * registers): small products take it as it lies. */
#ifndef KERNELS_CPU_PRODUCTS_ATTENTION_H
#define KERNELS_CPU_PRODUCTS_ATTENTION_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/micro.h"
#include "kernels/cpu/products/pack.h"

/* A multiple of the sides of all small products. */
enum { STRIPE = 48 };

/* Of the keys that a stripe of queries looks at, [from, seen): the first of the queries stands at
 * `first`, the last at seen - 1. */
struct keys {
	size_t from, seen, first;
};

/* to[keys][STRIPE] = keys[][width] times the stripe's queries (pack_right, `dim` deep), but for
 * small products that are all in the future of all their queries. */
void stripe_scores(float *to, const float *keys, const float *queries, const struct keys *k,
		   size_t dim, size_t width);

/* to[q][width] = sum over the keys j that q sees of stripe[j][q] rows[j][width] */
void stripe_gather(float *to, const float *stripe, const float *rows, const struct keys *k,
		   size_t width);

/* to[j][width] += sum over the queries q that see j of stripe[j][q] rows[q][width] */
void stripe_scatter(float *to, const float *stripe, const float *rows, const struct keys *k,
		    size_t width);

/* Rows of `dim` channels, `stride` apart, to rows of `width`, zeros behind them; each times
 * `factor`. */
void rows_take(float *to, size_t width, const float *from, size_t stride, size_t count, size_t dim,
	       float factor);
/* And back; each times its factor. NULL: `factor`. */
void rows_give(float *to, size_t stride, const float *from, size_t width, size_t count, size_t dim,
	       const float *factors, float factor);

/* The rows of a stripe's queries: rows_take, and turned, [dim,STRIPE], in panels of pack_right. */
void stripe_take(float *rows, float *turned, const float *from, size_t stride, size_t count,
		 size_t dim, size_t width);

/* So many queries of a stripe, its first ones, come before key `j` and may not see it. */
static inline size_t stripe_blind(size_t j, size_t first)
{
	return j > first ? cpu_min(j - first, STRIPE) : 0;
}

/* What a query may see beside being later than the keys. */
struct sight {
	size_t window;        /* 0: any */
	const int32_t *begin; /* of the sequence's positions; NULL */
	float softcap;        /* 0: none */
};

static inline struct sight sight_of(const struct attention *a, size_t batch)
{
	return (struct sight){ a->window, a->begin ? a->begin + batch * a->seq : NULL, a->softcap };
}

/* The first key that the query at `position` sees. */
static inline size_t sight_begin(const struct sight *s, size_t position)
{
	size_t window = s->window > 0 && position >= s->window ? position - s->window + 1 : 0;
	size_t given = s->begin ? (size_t)s->begin[position] : 0;

	return window > given ? window : given;
}

/* The first keys that `count` queries of a stripe see, from `first` on; columns behind them are as
 * the last one. NULL: all see all. */
static inline const size_t *sight_begins(const struct sight *s, size_t first, size_t count,
					 size_t begins[STRIPE])
{
	if (!s->window && !s->begin)
		return NULL;
	for (size_t q = 0; q < STRIPE; q++)
		begins[q] = sight_begin(s, first + (q < count ? q : count - 1));
	return begins;
}

/* The first key that any of those queries sees, down to a multiple of all panels' sides: none
 * before it is looked at. */
static inline size_t sight_from(const size_t *begins)
{
	return begins ? begins[0] / STRIPE * STRIPE : 0;
}

/* So many of a stripe's queries, its first ones, still see key `j`. */
static inline size_t sight_of_key(const size_t *begins, size_t j)
{
	size_t q = STRIPE;

	while (begins && q > 0 && begins[q - 1] > j)
		q--;
	return q;
}

/* What queries do not see of key `j`, in its row: `value`. */
static inline void stripe_hide(float row[STRIPE], size_t j, const struct keys *k,
			       const size_t *begins, float value)
{
	for (size_t q = 0; q < stripe_blind(j, k->first); q++)
		row[q] = value;
	for (size_t q = sight_of_key(begins, j); q < STRIPE; q++)
		row[q] = value;
}

/* a b + c, rounded once where products are. */
CPU_INLINE float attention_fused(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__)
	return __builtin_fmaf(a, b, c);
#else
	return a * b + c;
#endif
}

/* e^x as cpu_exp (which has the formula) for x <= 0, of which a softmax needs one for each pair of
 * a query and a key; 0 below -87. */
CPU_INLINE float attention_exp(float x)
{
	const float magic = 12582912.0f;
	float shifted = attention_fused(x, 1.44269504f, magic);
	float n = shifted - magic;
	float r = attention_fused(n, 2.12194440e-4f, attention_fused(n, -0.693359375f, x));
	float p = 1.9875691500e-4f;
	p = attention_fused(p, r, 1.3981999507e-3f);
	p = attention_fused(p, r, 8.3334519073e-3f);
	p = attention_fused(p, r, 4.1665795894e-2f);
	p = attention_fused(p, r, 1.6666665459e-1f);
	p = attention_fused(p, r, 5.0000001201e-1f);
	p = attention_fused(p * r, r, r) + 1.0f;
	uint32_t bits;
	memcpy(&bits, &shifted, sizeof(bits));
	bits = (bits + 127u) << 23;
	float scale;
	memcpy(&scale, &bits, sizeof(scale));
	return cpu_choose(x < -87.0f, 0.0f, p * scale);
}

/* A part of a worker's scratch. */
struct scratch_part {
	float **at;
	size_t floats;
};

/* Lays the parts out from `scratch` on, NULL to count; floats that takes. */
static inline size_t scratch_parts(const struct scratch_part *parts, size_t count, float *scratch)
{
	size_t taken = 0;

	for (size_t i = 0; i < count; i++) {
		*parts[i].at = scratch ? scratch + taken : NULL;
		taken += cpu_round_up(parts[i].floats, CPU_LANES);
	}
	return taken;
}

#endif
