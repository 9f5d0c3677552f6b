/* SPDX-License-Identifier: MIT */
/* attention.h - what both directions of attention share: stripes of queries.
 *
 * A stripe is STRIPE queries of one head. All that belongs to it stands transposed, a row for each
 * key or channel with a column for each query: then all products of a stripe have STRIPE columns,
 * and each query's softmax runs down a column, sixteen of them side by side. Columns behind the
 * last query hold anything, and nobody looks at them. */
#ifndef KERNELS_CPU_PRODUCTS_ATTENTION_H
#define KERNELS_CPU_PRODUCTS_ATTENTION_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/micro.h"
#include "kernels/cpu/products/pack.h"

/* Both are multiples of all panels' widths; PANELS of their heights. */
enum { STRIPE = 48, PANELS = 24 };

/* Which terms of a sum are not known to be zero, as no query sees a later key. */
enum terms {
	ALL_TERMS,
	PAST_KEYS,     /* columns are queries from `first` on, the sum runs over keys */
	LATER_QUERIES, /* columns are keys, the sum runs over queries from `first` on */
};

/* A product of small ones: c[m][n] = (added to, when `add`) the sum over k. */
struct stripes {
	const float *a; /* panels of pack_left */
	size_t a_depth; /* of each panel; k may be less */
	const float *b; /* panels of pack_right, or a stripe: rows of STRIPE */
	bool b_is_stripe;
	size_t b_depth; /* of each panel of b */
	float *c;
	size_t ldc;
	enum terms terms;
	size_t first;
	size_t from; /* the first term that is not known to be zero, with PAST_KEYS */
};

void stripes_multiply(const struct stripes *s, size_t m, size_t n, size_t k, bool add);

/* Of the keys that a stripe of queries looks at, [from, seen): the first of the queries stands at
 * `first`. */
struct keys {
	size_t from, seen, first;
};

/* to[keys][STRIPE] = keys (panels of pack_left, `dim` deep) times the stripe's queries
 * (pack_right), but for small products that are all in the future of all their queries. */
void stripe_scores(float *to, const float *keys, const float *queries, const struct keys *k,
		   size_t dim);

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

/* rows[count][dim] (`stride` apart) = from[dim][columns], turned, each row times its factor (NULL:
 * 1). */
void stripe_turn(float *rows, size_t stride, const float *from, size_t columns, size_t count,
		 size_t dim, const float *factor);

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
 * a query and a key. */
CPU_INLINE float attention_exp(float x)
{
	const float magic = 12582912.0f;

	x = cpu_choose(x < -87.0f, -87.0f, x);
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
	return p * scale;
}

/* The next `count` floats of a worker's scratch. */
static inline float *scratch_take(float **scratch, size_t count)
{
	float *taken = *scratch;

	*scratch += (count + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
	return taken;
}

static inline size_t attention_padded(size_t value, size_t to)
{
	return cpu_tasks(value, to) * to;
}

#endif
