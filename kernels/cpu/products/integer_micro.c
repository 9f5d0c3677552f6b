/* SPDX-License-Identifier: MIT */
/* integer_micro.c - pairs of 16 bits on every CPU; with VNNI four bytes at a time.
 *
 * vpdpbusd multiplies bytes without a sign by bytes with one. So the right operand gets 128 more in
 * each code (its sign bit turned), and a row's sums begin at -128 times the sum of its codes, which
 * takes that away again. Sums may leave 32 bits on the way and come back; at the end they are
 * exact. */
#include "kernels/cpu/products/integer_micro.h"

#include "kernels/cpu/cpu.h"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

enum { LINE = 16 };

/* --- panels ----------------------------------------------------------------------------------- */

/* Two codes as 16 bits each, or four. */
CPU_INLINE uint32_t word_of(const int8_t *code, size_t step, size_t codes)
{
	if (codes == 2)
		return (uint32_t)(uint16_t)code[0] | (uint32_t)(uint16_t)code[step] << 16;
	return (uint32_t)(uint8_t)code[0] | (uint32_t)(uint8_t)code[step] << 8 |
	       (uint32_t)(uint8_t)code[2 * step] << 16 | (uint32_t)(uint8_t)code[3 * step] << 24;
}

/* The last word of an element, or one of a panel's edge: zeros behind `left` codes. */
static uint32_t edge_word(const int8_t *code, size_t step, size_t codes, size_t left)
{
	int8_t some[4] = { 0 };

	for (size_t i = 0; i < codes && i < left; i++)
		some[i] = code[i * step];
	return word_of(some, 1, codes);
}

/* Whole words of `width` rows whose codes go along k, by blocks without gaps, of which compilers
 * make shuffles. */
CPU_INLINE void turn_words(uint32_t *restrict to, const int8_t *restrict from, size_t ld,
			   size_t width, size_t group, size_t words, size_t codes, uint32_t turn)
{
	uint32_t block[LINE * LINE];

	for (size_t i = 0; i < width; i += group, from += group * ld)
		for (size_t p = 0; p < words; p += LINE) {
			size_t count = cpu_min(LINE, words - p);
			for (size_t j = 0; j < group; j++)
				__builtin_prefetch(from + (group + j) * ld + p * codes);
			for (size_t j = 0; j < group; j++)
				for (size_t q = 0; q < count; q++)
					block[q * group + j] =
						word_of(from + j * ld + (p + q) * codes, 1, codes) ^
						turn;
			for (size_t q = 0; q < count; q++)
				memcpy(to + (p + q) * width + i, block + q * group,
				       group * sizeof(*to));
		}
}

/* The same where codes of neighbours lie side by side. */
CPU_INLINE void join_words(uint32_t *restrict to, const int8_t *restrict from, size_t ld,
			   size_t width, size_t words, size_t codes, uint32_t turn)
{
	for (size_t p = 0; p < words; p++, from += codes * ld, to += width)
		for (size_t i = 0; i < width; i++)
			to[i] = word_of(from + i, ld, codes) ^ turn;
}

/* A panel from element `first` on, of which `count` are there. */
CPU_INLINE void pack_panel(uint32_t *to, const struct integer_operand *x, size_t first,
			   size_t count, size_t width, size_t group, size_t codes, uint32_t turn)
{
	size_t to_i = x->k_along_memory ? x->ld : 1, to_p = x->k_along_memory ? 1 : x->ld;
	size_t words = cpu_tasks(x->k, codes), whole = x->k / codes;
	const int8_t *from = x->at + first * to_i;

	if (count < width)
		whole = 0;
	else if (x->k_along_memory)
		turn_words(to, from, x->ld, width, group, whole, codes, turn);
	else
		join_words(to, from, x->ld, width, whole, codes, turn);
	for (size_t p = whole; p < words; p++)
		for (size_t i = 0; i < width; i++)
			to[p * width + i] = turn ^
					    (i < count
						     ? edge_word(from + i * to_i + p * codes * to_p,
								 to_p, codes, x->k - p * codes)
						     : 0);
}

/* --- pairs ------------------------------------------------------------------------------------ */

#if defined(__AVX2__)
enum { LANES = 8, ROWS = 6, VECTORS = 2 };

typedef __m256i lanes;

static inline lanes multiply_add(uint32_t a, lanes b, lanes sum)
{
	return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_set1_epi32((int)a), b));
}
#elif defined(__SSE2__)
enum { LANES = 4, ROWS = 4, VECTORS = 2 };

typedef __m128i lanes;

static inline lanes multiply_add(uint32_t a, lanes b, lanes sum)
{
	return _mm_add_epi32(sum, _mm_madd_epi16(_mm_set1_epi32((int)a), b));
}
#else
enum { LANES = 4, ROWS = 4, VECTORS = 2 };

typedef int32_t lanes __attribute__((vector_size(sizeof(int32_t) * LANES)));

static inline lanes multiply_add(uint32_t a, lanes b, lanes sum)
{
	return sum + ((b << 16) >> 16) * (int32_t)(int16_t)a +
	       (b >> 16) * (int32_t)(int16_t)(a >> 16);
}
#endif
enum { COLUMNS = LANES * VECTORS, PAIR = 2 };

static void pairs_pack_left(uint32_t *to, const struct integer_operand *x, size_t first,
			    size_t count)
{
	size_t words = cpu_tasks(x->k, PAIR);

	for (size_t i = 0; i < count; i += ROWS, to += (1 + words) * ROWS) {
		memset(to, 0, ROWS * sizeof(*to));
		pack_panel(to + ROWS, x, first + i, cpu_min(ROWS, count - i), ROWS, ROWS, PAIR, 0);
	}
}

static void pairs_pack_right(uint32_t *to, const struct integer_operand *x, size_t first,
			     size_t count)
{
	size_t words = cpu_tasks(x->k, PAIR);

	for (size_t i = 0; i < count; i += COLUMNS, to += words * COLUMNS)
		pack_panel(to, x, first + i, cpu_min(COLUMNS, count - i), COLUMNS, COLUMNS, PAIR,
			   0);
}

static void pairs_product(int32_t *sum, const uint32_t *a, const uint32_t *b, size_t words)
{
	lanes sums[ROWS][VECTORS] = { 0 }, row[VECTORS];

	a += ROWS; /* zeros */
	for (size_t p = 0; p < words; p++, a += ROWS, b += COLUMNS) {
#pragma GCC unroll 16
		for (size_t v = 0; v < VECTORS; v++)
			memcpy(&row[v], b + v * LANES, sizeof(lanes));
#pragma GCC unroll 16
		for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 16
			for (size_t v = 0; v < VECTORS; v++)
				sums[i][v] = multiply_add(a[i], row[v], sums[i][v]);
	}
	/* one at a time, or compilers keep them in memory */
#pragma GCC unroll 16
	for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < VECTORS; v++)
			memcpy(sum + i * COLUMNS + v * LANES, &sums[i][v], sizeof(lanes));
}

const struct integer_micro integer_micro_pairs = {
	.rows = ROWS,
	.columns = COLUMNS,
	.codes = PAIR,
	.pack_left = pairs_pack_left,
	.pack_right = pairs_pack_right,
	.product = pairs_product,
};

/* --- VNNI ------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
enum { WIDE = 16, VNNI_ROWS = 8, VNNI_VECTORS = 3, VNNI_COLUMNS = WIDE * VNNI_VECTORS, FOUR = 4 };
static const uint32_t SIGNS = 0x80808080;

/* sum[i] of the codes of `count` elements. */
static void sum_codes(int32_t *restrict sum, const struct integer_operand *x, size_t first,
		      size_t count)
{
	memset(sum, 0, count * sizeof(*sum));
	if (x->k_along_memory)
		for (size_t i = 0; i < count; i++) {
			const int8_t *code = x->at + (first + i) * x->ld;
			int32_t all = 0;
			for (size_t p = 0; p < x->k; p++)
				all += code[p];
			sum[i] = all;
		}
	else
		for (size_t p = 0; p < x->k; p++) {
			const int8_t *code = x->at + p * x->ld + first;
			for (size_t i = 0; i < count; i++)
				sum[i] += code[i];
		}
}

static void vnni_pack_left(uint32_t *to, const struct integer_operand *x, size_t first,
			   size_t count)
{
	size_t words = cpu_tasks(x->k, FOUR);

	for (size_t i = 0; i < count; i += VNNI_ROWS, to += (1 + words) * VNNI_ROWS) {
		int32_t sum[VNNI_ROWS] = { 0 };
		size_t rows = cpu_min(VNNI_ROWS, count - i);
		sum_codes(sum, x, first + i, rows);
		for (size_t r = 0; r < VNNI_ROWS; r++)
			to[r] = 0u - 128u * (uint32_t)sum[r];
		pack_panel(to + VNNI_ROWS, x, first + i, rows, VNNI_ROWS, VNNI_ROWS, FOUR, 0);
	}
}

static void vnni_pack_right(uint32_t *to, const struct integer_operand *x, size_t first,
			    size_t count)
{
	size_t words = cpu_tasks(x->k, FOUR);

	for (size_t i = 0; i < count; i += VNNI_COLUMNS, to += words * VNNI_COLUMNS)
		pack_panel(to, x, first + i, cpu_min(VNNI_COLUMNS, count - i), VNNI_COLUMNS, WIDE,
			   FOUR, SIGNS);
}

__attribute__((target("avx512f,avx512vnni"))) static void
vnni_product(int32_t *sum, const uint32_t *a, const uint32_t *b, size_t words)
{
	__m512i sums[VNNI_ROWS][VNNI_VECTORS], row[VNNI_VECTORS];

#pragma GCC unroll 16
	for (size_t i = 0; i < VNNI_ROWS; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < VNNI_VECTORS; v++)
			sums[i][v] = _mm512_set1_epi32((int)a[i]);
	a += VNNI_ROWS;
	for (size_t p = 0; p < words; p++, a += VNNI_ROWS, b += VNNI_COLUMNS) {
#pragma GCC unroll 16
		for (size_t v = 0; v < VNNI_VECTORS; v++)
			row[v] = _mm512_loadu_si512(b + v * WIDE);
#pragma GCC unroll 16
		for (size_t i = 0; i < VNNI_ROWS; i++)
#pragma GCC unroll 16
			for (size_t v = 0; v < VNNI_VECTORS; v++)
				sums[i][v] = _mm512_dpbusd_epi32(sums[i][v], row[v],
								 _mm512_set1_epi32((int)a[i]));
	}
#pragma GCC unroll 16
	for (size_t i = 0; i < VNNI_ROWS; i++)
#pragma GCC unroll 16
		for (size_t v = 0; v < VNNI_VECTORS; v++)
			_mm512_storeu_si512(sum + i * VNNI_COLUMNS + v * WIDE, sums[i][v]);
}

const struct integer_micro integer_micro_vnni = {
	.rows = VNNI_ROWS,
	.columns = VNNI_COLUMNS,
	.codes = FOUR,
	.pack_left = vnni_pack_left,
	.pack_right = vnni_pack_right,
	.product = vnni_product,
};
#endif
