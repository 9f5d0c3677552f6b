/* SPDX-License-Identifier: MIT */
/* stripes.c - products over stripes of queries: of rows of keys and channels as they lie. */
#include "kernels/cpu/products/attention.h"

enum { LINE = 16, AHEAD = 4 };

/* One small product: what it makes of `rows` x `columns` at c. */
struct tile {
	size_t k;
	struct micro_left a;
	const float *b;
	size_t b_step;
	float *c;
	size_t ldc;
	bool add;
};

static void tile_multiply(const struct tile *t, size_t rows, size_t columns)
{
	float whole[MICRO_ROWS * MICRO_COLUMNS];

	if (rows == MICRO_ROWS) {
		micro_product_near(t->k, &t->a, t->b, t->b_step, t->c, t->ldc, t->add, columns);
		return;
	}
	micro_product_near(t->k, &t->a, t->b, t->b_step, whole, columns, false, columns);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++) {
			float sum = whole[i * columns + j];
			t->c[i * t->ldc + j] = t->add ? t->c[i * t->ldc + j] + sum : sum;
		}
}

void stripe_scores(float *to, const float *keys, const float *queries, const struct keys *k,
		   size_t dim, size_t width)
{
	for (size_t i = k->from; i < k->seen; i += MICRO_ROWS) {
		size_t rows = cpu_min(MICRO_ROWS, k->seen - i), columns;
		for (size_t j = stripe_blind(i, k->first) / MICRO_LANES * MICRO_LANES; j < STRIPE;
		     j += columns) {
			size_t in_panel = j % MICRO_COLUMNS;
			const struct tile tile = { .k = dim,
						   .a = { keys + i * width, width, 1 },
						   .b = queries + (j - in_panel) * dim + in_panel,
						   .b_step = MICRO_COLUMNS,
						   .c = to + i * STRIPE + j,
						   .ldc = STRIPE };
			columns = MICRO_COLUMNS - in_panel;
			tile_multiply(&tile, rows, columns);
		}
	}
}

/* Of the columns of a row of `width`, as many as are multiplied at once from `column` on. */
static size_t columns_at(size_t column, size_t width)
{
	return width - column >= MICRO_NEAR_COLUMNS ? MICRO_NEAR_COLUMNS : MICRO_LANES;
}

void stripe_gather(float *to, const float *stripe, const float *rows, const struct keys *k,
		   size_t width)
{
	for (size_t j = 0, columns; j < width; j += columns) {
		columns = columns_at(j, width);
		for (size_t i = 0; i < STRIPE; i += MICRO_ROWS) {
			size_t end = cpu_min(k->seen, k->first + i + MICRO_ROWS);
			const struct tile tile = { .k = end - k->from,
						   .a = { stripe + k->from * STRIPE + i, 1,
							  STRIPE },
						   .b = rows + k->from * width + j,
						   .b_step = width,
						   .c = to + i * width + j,
						   .ldc = width };
			tile_multiply(&tile, MICRO_ROWS, columns);
		}
	}
}

void stripe_scatter(float *to, const float *stripe, const float *rows, const struct keys *k,
		    size_t width)
{
	size_t count = k->seen - k->first;

	for (size_t j = 0, columns; j < width; j += columns) {
		columns = columns_at(j, width);
		for (size_t i = k->from; i < k->seen; i += MICRO_ROWS) {
			size_t from = i > k->first ? i - k->first : 0;
			const struct tile tile = { .k = count - from,
						   .a = { stripe + i * STRIPE + from, STRIPE, 1 },
						   .b = rows + from * width + j,
						   .b_step = width,
						   .c = to + i * width + j,
						   .ldc = width,
						   .add = true };
			tile_multiply(&tile, cpu_min(MICRO_ROWS, k->seen - i), columns);
		}
	}
}

/* Rows that lie so far apart that no CPU foresees the next one. */
CPU_INLINE void rows_scaled(float *restrict to, size_t to_stride, const float *restrict from,
			    size_t stride, size_t count, size_t dim, const float *factors,
			    float factor)
{
	for (size_t i = 0; i < count; i++, to += to_stride, from += stride) {
		float by = factors ? factors[i] : factor;
		for (size_t d = 0; d < dim; d += LINE) {
			__builtin_prefetch(from + AHEAD * stride + d);
			__builtin_prefetch(to + AHEAD * to_stride + d, 1);
		}
		for (size_t d = 0; d < dim; d++)
			to[d] = from[d] * by;
	}
}

void rows_take(float *to, size_t width, const float *from, size_t stride, size_t count, size_t dim,
	       float factor)
{
	rows_scaled(to, width, from, stride, count, dim, NULL, factor);
	for (size_t i = 0; i < count && dim < width; i++)
		memset(to + i * width + dim, 0, (width - dim) * sizeof(float));
}

void rows_give(float *to, size_t stride, const float *from, size_t width, size_t count, size_t dim,
	       const float *factors, float factor)
{
	rows_scaled(to, stride, from, width, count, dim, factors, factor);
}

void stripe_take(float *rows, float *turned, const float *from, size_t stride, size_t count,
		 size_t dim, size_t width)
{
	const struct operand near = { rows, width, true };

	rows_take(rows, width, from, stride, count, dim, 1.0f);
	pack_right(turned, &near, &(struct piece){ 0, count, 0, dim });
}
