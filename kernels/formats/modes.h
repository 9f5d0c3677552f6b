/* SPDX-License-Identifier: MIT */
/* modes.h - which products of few bits a GPU's matrix units make of the codes themselves, by
 * cuBLASLt. After NVIDIA's manual of cuBLAS 13, "Scaling Mode Support Overview" and
 * cublasLtMatmul():
 *
 *   scales                          formats        cuBLASLt's mode           compute capability
 *   one for a tensor                e4m3, e5m2     SCALAR_32F                8.9 and later
 *   one for a row                   e4m3, e5m2     OUTER_VEC_32F             9.0
 *   128 along, 1 or 128 across      e4m3, e5m2     VEC128_32F, BLK128x128    9.0 (never 128 x 128
 *                                   twice)
 *   powers of two, 32 along (or a   e4m3, e5m2     VEC32_UE8M0               10.0 and later
 *   multiple, and any across)
 *   e4m3, 16 along, any across      e2m1           VEC16_UE4M3               10.0 and later
 *
 * Never both of e5m2. What is summed over lies along memory in both operands ("TN"), which is the
 * only order for FP4, and for FP8 below 10.0. */
#ifndef KERNELS_FORMATS_MODES_H
#define KERNELS_FORMATS_MODES_H

#include "kernels/formats/operand.h"

/* Where the scale of a tile goes. across, along: its place among the tiles. */
enum scale_layout {
	LAYOUT_TILES,  /* [across][along] fp32; no product's */
	LAYOUT_SCALAR, /* one fp32 */
	LAYOUT_VECTOR, /* of each row of what is not summed over, fp32; a scalar is repeated */
	LAYOUT_VEC128, /* [along][row] fp32 */
	LAYOUT_BLOCKS, /* [across][along rounded up to 4] fp32 */
	/* A byte, e8m0, for 32 along of each row; boxes of 128 rows x 4 such blocks, [box of
	 * rows][box of blocks], the byte of row r and block b in place (r % 32) 16 + (r / 32) 4 + b
	 * of its box; beyond the matrix 0 */
	LAYOUT_E8M0,
	LAYOUT_E4M3 /* so, e4m3, for 16 along; behind them S of the tensor (operand.h), fp32 */
};

enum { BOX_ROWS = 128, BOX_BLOCKS = 4, BOX_BYTES = BOX_ROWS * BOX_BLOCKS };

/* Elements along that a byte of LAYOUT_E8M0 or LAYOUT_E4M3 is for; 0: another layout. */
static inline uint32_t layout_block(enum scale_layout layout)
{
	return layout == LAYOUT_E8M0 ? 32 : layout == LAYOUT_E4M3 ? 16 : 0;
}

/* C[m,n] sums over k. a, b: NULL or bits 0: as it is. capability: 90 is 9.0.
 * NULL, and how the scales of A and B are laid; else why there is no such product, in words that
 * follow "emulated:". */
struct product_sizes {
	size_t m, n, k;
};
const char *codes_refused(const struct operand_cast *a, const struct operand_cast *b,
			  const struct product_sizes *sizes, int capability,
			  enum scale_layout layout[2]);

#endif
