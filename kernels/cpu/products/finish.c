/* SPDX-License-Identifier: MIT */
/* finish.c - bias and activation while the sums are near. */
#include "kernels/cpu/products/finish.h"

enum { LINE = 16, ROWS_AHEAD = 4 };

/* Asks for `columns` of a row that will be read or written. */
static void row_ahead(const float *row, size_t columns)
{
	for (size_t j = 0; j < columns; j += LINE)
		__builtin_prefetch(row + j);
}

void product_finish(const struct gemm *g, float *c, size_t row, size_t rows, size_t column,
		    size_t columns)
{
	const float *other = g->then == GEMM_GELU ? g->c : g->kept; /* comes from afar */

	if (!g->bias && g->then == GEMM_PLAIN)
		return;
	for (size_t i = row; i < row + rows; i++) {
		size_t at = i * g->ldc + column;
		if (g->then != GEMM_PLAIN && i + ROWS_AHEAD < row + rows)
			row_ahead(other + at + ROWS_AHEAD * g->ldc, columns);
		if (g->bias)
			cpu_bias_add(c + at, g->bias + column, columns);
		if (g->then == GEMM_GELU)
			cpu_gelu((float *)g->c + at, c + at, columns, g->gelu);
		if (g->then == GEMM_GELU_BACKWARD)
			cpu_gelu_slope(c + at, c + at, (const float *)g->kept + at, columns,
				       g->gelu);
	}
}
