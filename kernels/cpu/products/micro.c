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

static inline lanes load(const float *from)
{
	lanes x;

	memcpy(&x, from, sizeof(x));
	return x;
}

/* The first `rows` of a product, a constant. */
CPU_INLINE void rows_product(size_t rows, size_t k, const float *a, size_t a_step, const float *b,
			     size_t b_step, float *c, size_t ldc, bool add,
			     struct micro_ahead ahead)
{
	lanes sum[MICRO_ROWS][MICRO_VECTORS] = { 0 }, row[MICRO_VECTORS];

	/* c comes from afar; it is there when the sums are. */
#pragma GCC unroll 16
	for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
		for (size_t j = 0; j < MICRO_COLUMNS; j += 16)
			__builtin_prefetch(c + i * ldc + j, 1);
	for (size_t p = 0; p < k; p++, a += a_step, b += b_step) {
		__builtin_prefetch(ahead.at + p * ahead.step, 0, 2);
#pragma GCC unroll 16
		for (size_t v = 0; v < MICRO_VECTORS; v++)
			row[v] = load(b + v * MICRO_LANES);
#pragma GCC unroll 16
		for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
			for (size_t v = 0; v < MICRO_VECTORS; v++)
				sum[i][v] = multiply_add(a[i], row[v], sum[i][v]);
	}
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
