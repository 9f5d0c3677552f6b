/* SPDX-License-Identifier: MIT */
/* products/ - what multiplies: a small product in registers, operands packed for it, large ones
 * cut into small ones, and attention, which is made of the same.
 *
 * micro.h - a small product that stays in registers, for the instruction set of this build. */
#ifndef KERNELS_CPU_PRODUCTS_MICRO_H
#define KERNELS_CPU_PRODUCTS_MICRO_H

#include <stdbool.h>
#include <stddef.h>

/* Sums of MICRO_ROWS x MICRO_COLUMNS fill the registers, but for a row of b and an element of a:
 * 32 of 16 floats with AVX-512, 16 of 8 with AVX2, 32 of 4 with NEON, 16 of 4 with SSE. */
#if defined(__AVX512F__)
enum { MICRO_LANES = 16, MICRO_ROWS = 8, MICRO_VECTORS = 3 };
#elif defined(__AVX2__) && defined(__FMA__)
enum { MICRO_LANES = 8, MICRO_ROWS = 6, MICRO_VECTORS = 2 };
#elif defined(__aarch64__)
enum { MICRO_LANES = 4, MICRO_ROWS = 8, MICRO_VECTORS = 3 };
#else
enum { MICRO_LANES = 4, MICRO_ROWS = 4, MICRO_VECTORS = 2 };
#endif
enum { MICRO_COLUMNS = MICRO_LANES * MICRO_VECTORS, MICRO_NEAR_COLUMNS = MICRO_LANES * 2 };

/* What a product asks for meanwhile: at its first term the line at `at`, at each further one that
 * `step` floats on. */
struct micro_ahead {
	const float *at;
	size_t step;
};

/* c[i][j] = sum over p < k of a[p*a_step + i] * b[p*b_step + j], added to c when `add`; rows of c
 * are ldc apart. One chain of fused multiply-adds in the order of p for each element, whatever the
 * width of the machine, so that AVX-512, AVX2 and NEON agree to the bit; the base instructions
 * have none and round each product. */
void micro_product(size_t k, const float *a, size_t a_step, const float *b, size_t b_step, float *c,
		   size_t ldc, bool add, struct micro_ahead ahead);

/* The same where c has only so many rows and columns; a and b must be readable for all. */
void micro_product_edge(size_t k, const float *a, size_t a_step, const float *b, size_t b_step,
			float *c, size_t ldc, bool add, size_t rows, size_t columns,
			struct micro_ahead ahead);

/* Element i of term p stands at at[i * row + p * step]. */
struct micro_left {
	const float *at;
	size_t row, step;
};

/* The same where all operands are in the caches, and a lies as it happens to: of MICRO_COLUMNS,
 * MICRO_NEAR_COLUMNS or MICRO_LANES columns, and of `rows`; a must be readable for MICRO_ROWS. */
void micro_product_near(size_t k, const struct micro_left *a, const float *b, size_t b_step,
			float *c, size_t ldc, bool add, size_t rows, size_t columns);

#endif
