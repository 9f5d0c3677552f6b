/* SPDX-License-Identifier: MIT */
/* finish.h - what follows a product's sums. */
#ifndef KERNELS_CPU_PRODUCTS_FINISH_H
#define KERNELS_CPU_PRODUCTS_FINISH_H

#include "kernels/cpu/cpu.h"

/* Bias and activation of a piece of C whose sums are complete; they lie in c, which has the shape
 * of g->c. */
void product_finish(const struct gemm *g, float *c, size_t row, size_t rows, size_t column,
		    size_t columns);

#endif
