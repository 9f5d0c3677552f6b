/* SPDX-License-Identifier: MIT */
/* stripes.c - products over stripes of queries: of rows of keys and channels as they lie. */
#include "kernels/cpu/products/attention.h"

enum { LINE = 16, AHEAD = 4 };

void stripe_scores(float *to, const float *keys, const float *queries, const struct keys *k,
		   size_t dim, size_t width)
{
	for (size_t i = k->from; i < k->seen; i += MICRO_ROWS) {
		const struct micro_left rows = { keys + i * width, width, 1 };
		size_t count = cpu_min(MICRO_ROWS, k->seen - i), columns;
		for (size_t j = stripe_blind(i, k->first) / MICRO_LANES * MICRO_LANES; j < STRIPE;
		     j += columns) {
			size_t in_panel = j % MICRO_COLUMNS;
			columns = MICRO_COLUMNS - in_panel;
			micro_product_near(dim, &rows, queries + (j - in_panel) * dim + in_panel,
					   MICRO_COLUMNS, to + i * STRIPE + j, STRIPE, false, count,
					   columns);
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
			const struct micro_left queries = { stripe + k->from * STRIPE + i, 1,
							    STRIPE };
			size_t end = cpu_min(k->seen, k->first + i + MICRO_ROWS);
			micro_product_near(end - k->from, &queries, rows + k->from * width + j,
					   width, to + i * width + j, width, false, MICRO_ROWS,
					   columns);
		}
	}
}

void stripe_scatter(float *to, const float *stripe, const float *rows, const struct keys *k,
		    size_t width)
{
	size_t queries = k->seen - k->first;

	for (size_t j = 0, columns; j < width; j += columns) {
		columns = columns_at(j, width);
		for (size_t i = k->from; i < k->seen; i += MICRO_ROWS) {
			size_t from = stripe_blind(i, k->first);
			const struct micro_left keys = { stripe + i * STRIPE + from, STRIPE, 1 };
			micro_product_near(queries - from, &keys, rows + from * width + j, width,
					   to + i * width + j, width, true,
					   cpu_min(MICRO_ROWS, k->seen - i), columns);
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
