/* SPDX-License-Identifier: MIT */
/* integer_gemm.h - a product of operands that are integers times scales. */
#ifndef KERNELS_CPU_PRODUCTS_INTEGER_GEMM_H
#define KERNELS_CPU_PRODUCTS_INTEGER_GEMM_H

#include "kernels/cpu/cpu.h"

/* Whether integer_gemm() does it: both operands are integers whose scales do not change along the
 * sum, which is neither one element nor so long that it would leave 32 bits. */
bool integer_gemm_does(const struct gemm *g);

/* C[i,j] = alpha (a_i (b_j (sum over k of code code))) + beta C + bias, then as cpu_gemm; the sum
 * is exact, a and b are the scales, everything behind the sum is fp32. So a GPU's products of
 * integers would have it. */
void integer_gemm(struct device *dev, const struct gemm *g);

#endif
