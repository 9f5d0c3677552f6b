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

/* Where the next term of the sums is: element i of it at a[i * a_row]. */
struct terms {
	const float *a, *b;
	size_t a_row, a_step, b_step;
};

/* One term of each sum. */
CPU_INLINE void add_term(size_t rows, size_t vectors, lanes sum[MICRO_ROWS][MICRO_VECTORS],
			 struct terms *t)
{
	lanes row[MICRO_VECTORS];

#pragma GCC unroll 16
	for (size_t v = 0; v < vectors; v++)
		row[v] = load(t->b + v * MICRO_LANES);
#pragma GCC unroll 16
	for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < vectors; v++)
			sum[i][v] = multiply_add(t->a[i * t->a_row], row[v], sum[i][v]);
	t->a += t->a_step;
	t->b += t->b_step;
}

CPU_INLINE void ask_ahead(struct micro_ahead *ahead)
{
	__builtin_prefetch(ahead->at, 0, 2);
	ahead->at += ahead->step;
}

/* c comes from afar; it is there when the sums are. Its lines are asked for at once where they are
 * few; 24 of them would take all buffers in which the first cache awaits lines, and b would wait
 * behind them: one at each term. How many terms that were. */
CPU_INLINE size_t ask_for_c(size_t rows, const float *c, size_t ldc, size_t k,
			    lanes sum[MICRO_ROWS][MICRO_VECTORS], struct terms *t,
			    struct micro_ahead *ahead)
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
			ask_ahead(ahead);
			add_term(rows, MICRO_VECTORS, sum, t);
		}
	return rows * LINES_OF_C;
}

/* The sums go to c, or are added to it. */
CPU_INLINE void store_sums(size_t rows, size_t vectors, lanes sum[MICRO_ROWS][MICRO_VECTORS],
			   float *c, size_t ldc, bool add)
{
#pragma GCC unroll 16
	for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < vectors; v++) {
			float *to = c + i * ldc + v * MICRO_LANES;
			if (add)
				sum[i][v] = load(to) + sum[i][v];
			memcpy(to, &sum[i][v], sizeof(lanes));
		}
}

/* The first `rows` of a product, a constant. */
CPU_INLINE void rows_product(size_t rows, size_t k, const float *a, size_t a_step, const float *b,
			     size_t b_step, float *c, size_t ldc, bool add,
			     struct micro_ahead ahead)
{
	lanes sum[MICRO_ROWS][MICRO_VECTORS] = { 0 };
	struct terms t = { a, b, 1, a_step, b_step };

	for (size_t p = ask_for_c(rows, c, ldc, k, sum, &t, &ahead); p < k; p++) {
		ask_ahead(&ahead);
		add_term(rows, MICRO_VECTORS, sum, &t);
	}
	store_sums(rows, MICRO_VECTORS, sum, c, ldc, add);
}

void micro_product(size_t k, const float *a, size_t a_step, const float *b, size_t b_step, float *c,
		   size_t ldc, bool add, struct micro_ahead ahead)
{
	rows_product(MICRO_ROWS, k, a, a_step, b, b_step, c, ldc, add, ahead);
}

/* Rows and columns of a product that is made whole, rows of it `ld` apart. */
static void store_part(const float *whole, size_t ld, size_t rows, size_t columns, float *c,
		       size_t ldc, bool add)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++) {
			float sum = whole[i * ld + j];
			c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
		}
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
	store_part(whole, MICRO_COLUMNS, rows, columns, c, ldc, add);
}

/* As many vectors, a constant. */
CPU_INLINE void near_product(size_t vectors, size_t k, const struct micro_left *a, const float *b,
			     size_t b_step, float *c, size_t ldc, bool add)
{
	lanes sum[MICRO_ROWS][MICRO_VECTORS] = { 0 };
	struct terms t = { a->at, b, a->row, a->step, b_step };

	for (size_t p = 0; p < k; p++)
		add_term(MICRO_ROWS, vectors, sum, &t);
	store_sums(MICRO_ROWS, vectors, sum, c, ldc, add);
}

static void near_columns(size_t k, const struct micro_left *a, const float *b, size_t b_step,
			 float *c, size_t ldc, bool add, size_t columns)
{
	if (columns == MICRO_COLUMNS)
		near_product(MICRO_VECTORS, k, a, b, b_step, c, ldc, add);
	else if (columns == MICRO_NEAR_COLUMNS)
		near_product(2, k, a, b, b_step, c, ldc, add);
	else
		near_product(1, k, a, b, b_step, c, ldc, add);
}

void micro_product_near(size_t k, const struct micro_left *a, const float *b, size_t b_step,
			float *c, size_t ldc, bool add, size_t rows, size_t columns)
{
	float whole[MICRO_ROWS * MICRO_COLUMNS];

	if (rows == MICRO_ROWS) {
		near_columns(k, a, b, b_step, c, ldc, add, columns);
		return;
	}
	near_columns(k, a, b, b_step, whole, columns, false, columns);
	store_part(whole, columns, rows, columns, c, ldc, add);
}
