/* SPDX-License-Identifier: MIT */
/* quantize.cuh - what the two halves of an operand's way to few bits share: scales.cu, then
 * quantize.cu. */
#ifndef KERNELS_CUDA_QUANTIZE_CUH
#define KERNELS_CUDA_QUANTIZE_CUH

#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/few_bits.h"
#include "kernels/formats/scale.h"

/* Elements of a row that a thread reads at once, where it can. */
enum { EACH = 8 };

/* For a type T of the operand: fp32, or what the device computes in. */
#define FOR_INPUT(dev, fp32, kernel) \
	((fp32) || (dev)->compute != COMPUTE_BF16 ? kernel<float> : kernel<bf16>)

static inline bool reads_wide(const struct few_bits *f, size_t each)
{
	return (uintptr_t)f->in % 16 == 0 && f->shape.columns % each == 0 &&
	       f->shape.ld % each == 0;
}

/* Queues what finds the scale of each tile, and tells where they will be. An operand that is turned
 * first becomes f->in. False: a failure. */
extern "C" bool cuda_operand_scales(struct device *dev, const struct place *at, struct few_bits *f,
				    const struct grid *grid, const struct scale **scale);
/* Lays them where f->scales wants them. */
extern "C" void cuda_lay_scales(struct device *dev, const struct place *at,
				const struct few_bits *f, const struct scale *scale);

#endif
