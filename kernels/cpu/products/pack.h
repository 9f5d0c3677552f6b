/* SPDX-License-Identifier: MIT */
/* pack.h - an operand of a product, copied into the order in which the small product reads it. */
#ifndef KERNELS_CPU_PRODUCTS_PACK_H
#define KERNELS_CPU_PRODUCTS_PACK_H

#include <stdbool.h>
#include <stddef.h>

/* Element (i, p) lies at[i*ld + p] where k runs along memory, else at[p*ld + i]; i counts rows of
 * the left operand or columns of the right one, p is summed over. */
struct operand {
	const float *at;
	size_t ld;
	bool k_along_memory;
};

/* i in first..first+count, p in from..from+k. */
struct piece {
	size_t first, count, from, k;
};

/* Panels of MICRO_ROWS (pack_left, times alpha) or MICRO_COLUMNS (pack_right): for each p all i of
 * the panel, then the next p; one panel behind another, with zeros where the last one is wider than
 * what is left. */
void pack_left(float *to, const struct operand *x, const struct piece *piece, float alpha);
void pack_right(float *to, const struct operand *x, const struct piece *piece);

/* What will be packed, and how much of it has been asked for, so that it is near then. */
struct pack_ahead {
	const float *row;
	size_t ld, line, lines; /* lines of a row, and the next of them */
	size_t left, at_once;
};

/* pack_ask() so many times asks for all of it. */
struct pack_ahead pack_ahead(const struct operand *x, const struct piece *piece, size_t times);
void pack_ask(struct pack_ahead *ahead);

#endif
