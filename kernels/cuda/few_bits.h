/* SPDX-License-Identifier: MIT */
/* few_bits.h - operands as numbers of few bits (kernels/formats/operand.h) on the device: ops/scales.cu and
 * ops/quantize.cu make them, lib/narrow.c multiplies them. */
#ifndef KERNELS_CUDA_FEW_BITS_H
#define KERNELS_CUDA_FEW_BITS_H

#include "kernels/cuda/cuda.h"
#include "kernels/formats/operand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the scale of a tile goes. across, along: its place among the tiles; K-major and the like are
 * cuBLAS 13.1, 3.1.4 "Narrow Precision Data Types Usage". */
enum scale_layout {
	LAYOUT_TILES,  /* [across][along] fp32 */
	LAYOUT_SCALAR, /* one fp32 */
	LAYOUT_VECTOR, /* of each row of what is not summed over, fp32; a scalar is repeated */
	LAYOUT_VEC128, /* [along][row] fp32 */
	LAYOUT_BLOCKS  /* [across][along rounded up to 4] fp32 */
};

/* What shares a scale, in a stored matrix. */
struct tiles {
	size_t rows, columns; /* of one */
	size_t down, right;   /* how many */
};
struct tiles tiles_of(const struct operand_cast *cast, const struct stored *shape);

struct few_bits {
	const void *in;
	bool in_fp32; /* else in the type that the device computes in */
	struct stored shape;
	const struct operand_use *use;
	/* One of: numbers [rows, columns] without gaps ... */
	void *values;
	bool values_fp32;
	/* ... or codes, what is summed over along memory; and the same with the other side along it, or NULL. Rows
	 * and columns are multiples of 16 then, unless the codes lie as the operand does. */
	uint8_t *codes, *turned;
	float *scales; /* with codes */
	enum scale_layout layout;
};

/* Queues it. A failure is kept. */
void cuda_few_bits(struct device *dev, const struct place *at, const struct few_bits *f);
/* Bytes of work area that takes. */
size_t cuda_few_bits_area(const struct operand_cast *cast, const struct stored *shape);
/* Floats of scales in that layout. */
size_t cuda_scale_floats(enum scale_layout layout, const struct operand_cast *cast,
			 const struct stored *shape);

void cuda_quantize(struct device *dev, float *out, const float *x, const struct stored *shape,
		   const struct operand_use *use);
void cuda_codes(struct device *dev, uint8_t *codes, float *scales, const void *x,
		const struct stored *shape, const struct operand_use *use);
void cuda_amax_step(struct device *dev, float *histories, size_t count, size_t length);
void cuda_weights_amax(struct device *dev, float *amax, const float *weights, size_t count);
void cuda_weights_encode(struct device *dev, uint8_t *codes, const float *weights, size_t count,
			 const struct operand_cast *cast, const float *amax);
void cuda_weights_decode(struct device *dev, float *weights, const uint8_t *codes, size_t count,
			 const struct operand_cast *cast, const float *amax);
void cuda_largest(struct device *dev, float *to, const float *from, size_t count);

#ifdef __cplusplus
}
#endif

#endif
