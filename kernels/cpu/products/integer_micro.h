/* SPDX-License-Identifier: MIT */
/* integer_micro.h - a small product of integers in registers, exact, and the order in which it
 * reads them.
 *
 * A word is 32 bits: four codes as bytes where there is VNNI, else two as 16 bits. Panels hold, for
 * each word of k, those of all their rows or columns; a panel of the left operand begins with the
 * numbers that its sums begin with. Behind the last code of k, and where a panel is wider than what
 * is left, stand codes of 0. */
#ifndef KERNELS_CPU_PRODUCTS_INTEGER_MICRO_H
#define KERNELS_CPU_PRODUCTS_INTEGER_MICRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Element (i, p) lies at[i*ld + p] where k runs along memory, else at[p*ld + i]. */
struct integer_operand {
	const int8_t *at;
	size_t ld, k;
	bool k_along_memory;
};

struct integer_micro {
	size_t rows, columns; /* of a panel of the left operand, of the right one */
	size_t codes;         /* in a word */
	/* Rows or columns first..first+count, over all of k: panels of (1 + words) x rows, or words
	 * x columns. */
	void (*pack_left)(uint32_t *to, const struct integer_operand *x, size_t first,
			  size_t count);
	void (*pack_right)(uint32_t *to, const struct integer_operand *x, size_t first,
			   size_t count);
	/* sum[rows][columns] of two panels. Exact while it fits into 32 bits. */
	void (*product)(int32_t *sum, const uint32_t *a, const uint32_t *b, size_t words);
};

/* Sums of a pair of panels, at most. */
enum { INTEGER_TILE_MAX = 8 * 48 };

extern const struct integer_micro integer_micro_pairs;
#if defined(__AVX512F__)
extern const struct integer_micro integer_micro_vnni; /* for CPUs that have it */
#endif

#endif
