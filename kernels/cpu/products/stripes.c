/* SPDX-License-Identifier: MIT */
/* stripes.c - products over stripes of queries. */
#include <math.h>

#include "kernels/cpu/products/attention.h"

enum { SQUARE = 16 };

/* The terms from..to of the sum. */
struct range {
	size_t from, to;
};

static void small_product(const struct stripes *s, size_t row, size_t column, size_t rows,
			  size_t columns, struct range k, bool add)
{
	size_t b_step = s->b_is_stripe ? STRIPE : MICRO_COLUMNS;
	const float *a = s->a + row * s->a_depth + k.from * MICRO_ROWS;
	const float *b = s->b + (s->b_is_stripe ? column : column * s->b_depth) + k.from * b_step;
	float *c = s->c + row * s->ldc + column;
	const struct micro_ahead ahead = { a + (k.to - k.from) * MICRO_ROWS, MICRO_ROWS };

	if (rows == MICRO_ROWS && columns == MICRO_COLUMNS)
		micro_product(k.to - k.from, a, MICRO_ROWS, b, b_step, c, s->ldc, add, ahead);
	else
		micro_product_edge(k.to - k.from, a, MICRO_ROWS, b, b_step, c, s->ldc, add, rows,
				   columns, ahead);
}

/* The terms of MICRO_COLUMNS columns from `column` on that one of them needs. */
static struct range terms_of(const struct stripes *s, size_t column, size_t k)
{
	struct range range = { 0, k };

	if (s->terms == PAST_KEYS) {
		range.from = s->from;
		range.to = cpu_min(k, s->first + column + MICRO_COLUMNS);
	}
	if (s->terms == LATER_QUERIES && column > s->first)
		range.from = cpu_min(k, column - s->first);
	return range;
}

void stripes_multiply(const struct stripes *s, size_t m, size_t n, size_t k, bool add)
{
	for (size_t j = 0; j < n; j += MICRO_COLUMNS)
		for (size_t i = 0; i < m; i += MICRO_ROWS)
			small_product(s, i, j, cpu_min(MICRO_ROWS, m - i),
				      cpu_min(MICRO_COLUMNS, n - j), terms_of(s, j, k), add);
}

void stripe_scores(float *to, const float *keys, const float *queries, const struct keys *k,
		   size_t dim)
{
	const struct stripes s = {
		.a = keys, .a_depth = dim, .b = queries, .b_depth = dim, .c = to, .ldc = STRIPE
	};

	for (size_t i = k->from; i < k->seen; i += MICRO_ROWS)
		for (size_t j = 0; j < STRIPE; j += MICRO_COLUMNS)
			if (i < k->first + j + MICRO_COLUMNS)
				small_product(&s, i, j, cpu_min(MICRO_ROWS, k->seen - i),
					      MICRO_COLUMNS, (struct range){ 0, dim }, false);
}

/* SQUARE x SQUARE of them by way of a block without gaps: memory is met a line at a time. */
static void turn_square(float *rows, size_t stride, const float *from, size_t columns,
			const float *factor)
{
	float block[SQUARE * SQUARE];

	for (size_t i = 0; i < SQUARE; i++)
		for (size_t d = 0; d < SQUARE; d++)
			block[i * SQUARE + d] = from[d * columns + i];
	for (size_t i = 0; i < SQUARE; i++)
		for (size_t d = 0; d < SQUARE; d++)
			rows[i * stride + d] = block[i * SQUARE + d] * (factor ? factor[i] : 1.0f);
}

void stripe_turn(float *rows, size_t stride, const float *from, size_t columns, size_t count,
		 size_t dim, const float *factor)
{
	size_t squares = dim / SQUARE * SQUARE;

	for (size_t i = 0; i < count; i += SQUARE, from += SQUARE, rows += SQUARE * stride) {
		size_t left = cpu_min(SQUARE, count - i);
		bool is_whole = left == SQUARE;
		const float *f = factor ? factor + i : NULL;
		for (size_t d = 0; is_whole && d < squares; d += SQUARE)
			turn_square(rows + d, stride, from + d * columns, columns, f);
		for (size_t j = 0; j < left; j++)
			for (size_t d = is_whole ? squares : 0; d < dim; d++)
				rows[j * stride + d] = from[d * columns + j] * (f ? f[j] : 1.0f);
	}
}
