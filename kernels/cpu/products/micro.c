/* SPDX-License-Identifier: MIT */
/* micro.c - one product in registers for all instruction sets: what differs is the vector and its
 * fused multiply-add. */
#include "kernels/cpu/products/micro.h"

#include <string.h>

#include "kernels/cpu/cpu.h"

#if defined(__AVX512F__)
#include <immintrin.h>

typedef __m512 lanes;

static inline lanes multiply_add(float a, lanes b, lanes sum)
{
	return _mm512_fmadd_ps(_mm512_set1_ps(a), b, sum);
}
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

typedef __m256 lanes;

static inline lanes multiply_add(float a, lanes b, lanes sum)
{
	return _mm256_fmadd_ps(_mm256_set1_ps(a), b, sum);
}
#elif defined(__aarch64__)
#include <arm_neon.h>

typedef float32x4_t lanes;

static inline lanes multiply_add(float a, lanes b, lanes sum)
{
	return vfmaq_n_f32(sum, b, a);
}
#else
typedef float lanes __attribute__((vector_size(sizeof(float) * MICRO_LANES)));

static inline lanes multiply_add(float a, lanes b, lanes sum)
{
	return a * b + sum;
}
#endif

enum { LINE = 16, LINES_OF_C = (MICRO_COLUMNS + LINE - 1) / LINE };

static inline lanes load(const float *from)
{
	lanes x;

	memcpy(&x, from, sizeof(x));
	return x;
}

/* Where the next term of the sums is. */
struct terms {
	const float *a, *b;
	size_t a_step, b_step;
	struct micro_ahead ahead;
};

/* One term of each sum. */
CPU_INLINE void add_term(size_t rows, lanes sum[MICRO_ROWS][MICRO_VECTORS], struct terms *t)
{
	lanes row[MICRO_VECTORS];

	__builtin_prefetch(t->ahead.at, 0, 2);
#pragma GCC unroll 16
	for (size_t v = 0; v < MICRO_VECTORS; v++)
		row[v] = load(t->b + v * MICRO_LANES);
#pragma GCC unroll 16
	for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < MICRO_VECTORS; v++)
			sum[i][v] = multiply_add(t->a[i], row[v], sum[i][v]);
	t->a += t->a_step;
	t->b += t->b_step;
	t->ahead.at += t->ahead.step;
}

/* c comes from afar; it is there when the sums are. Its lines are asked for at once where they are
 * few; 24 of them would take all buffers in which the first cache awaits lines, and b would wait
 * behind them: one at each term. How many terms that were. */
CPU_INLINE size_t ask_for_c(size_t rows, const float *c, size_t ldc, size_t k,
			    lanes sum[MICRO_ROWS][MICRO_VECTORS], struct terms *t)
{
	if (LINES_OF_C == 1 || k < rows * LINES_OF_C) {
#pragma GCC unroll 16
		for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
			for (size_t j = 0; j < LINES_OF_C; j++)
				__builtin_prefetch(c + i * ldc + j * LINE, 1);
		return 0;
	}
	for (size_t i = 0; i < rows; i++, c += ldc)
#pragma GCC unroll 16
		for (size_t j = 0; j < LINES_OF_C; j++) {
			__builtin_prefetch(c + j * LINE, 1);
			add_term(rows, sum, t);
		}
	return rows * LINES_OF_C;
}

/* The first `rows` of a product, a constant. */
CPU_INLINE void rows_product(size_t rows, size_t k, const float *a, size_t a_step, const float *b,
			     size_t b_step, float *c, size_t ldc, bool add,
			     struct micro_ahead ahead)
{
	lanes sum[MICRO_ROWS][MICRO_VECTORS] = { 0 };
	struct terms t = { a, b, a_step, b_step, ahead };

	for (size_t p = ask_for_c(rows, c, ldc, k, sum, &t); p < k; p++)
		add_term(rows, sum, &t);
#pragma GCC unroll 16
	for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < MICRO_VECTORS; v++) {
			float *to = c + i * ldc + v * MICRO_LANES;
			if (add)
				sum[i][v] = load(to) + sum[i][v];
			memcpy(to, &sum[i][v], sizeof(lanes));
		}
}

void micro_product(size_t k, const float *a, size_t a_step, const float *b, size_t b_step, float *c,
		   size_t ldc, bool add, struct micro_ahead ahead)
{
	rows_product(MICRO_ROWS, k, a, a_step, b, b_step, c, ldc, add, ahead);
}

void micro_product_edge(size_t k, const float *a, size_t a_step, const float *b, size_t b_step,
			float *c, size_t ldc, bool add, size_t rows, size_t columns,
			struct micro_ahead ahead)
{
	float whole[MICRO_ROWS * MICRO_COLUMNS];

	if (rows <= 2)
		rows_product(2, k, a, a_step, b, b_step, whole, MICRO_COLUMNS, false, ahead);
	else if (rows <= 4)
		rows_product(4, k, a, a_step, b, b_step, whole, MICRO_COLUMNS, false, ahead);
	else
		micro_product(k, a, a_step, b, b_step, whole, MICRO_COLUMNS, false, ahead);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++) {
			float sum = whole[i * MICRO_COLUMNS + j];
			c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
		}
}
