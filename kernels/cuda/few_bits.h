/* SPDX-License-Identifier: MIT */
/* few_bits.h - operands as numbers of few bits (kernels/formats/operand.h) on the device:
 * operands/scales.cu and operands/quantize.cu make them, lib/narrow.c multiplies them. */
#ifndef KERNELS_CUDA_FEW_BITS_H
#define KERNELS_CUDA_FEW_BITS_H

#include "kernels/cuda/cuda.h"
#include "kernels/formats/modes.h"

#ifdef __cplusplus
extern "C" {
#endif

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
	/* ... or codes, what is summed over along memory; and the same with the other side along
	 * it, or NULL. Rows and columns are multiples of 16 then, unless the codes lie as the
	 * operand does. A byte each; with LAYOUT_E4M3 two in a byte, the first in its lower
	 * half. */
	uint8_t *codes, *turned;
	void *scales; /* with codes, as the layout has them */
	enum scale_layout layout;
};

/* What an operation makes of what it writes, beside it. */
struct finishing {
	float *amax; /* the largest |x| goes there, as a maximum of what is there; NULL: not */
	/* Codes with LAYOUT_VEC128 or LAYOUT_SCALAR, or values, as it lies; use NULL: neither. */
	struct few_bits made;
};
/* expected.c: the one that is expected, or has been written. */
struct expected {
	const void *out;      /* NULL: none */
	size_t products;      /* that will read it */
	float *amax;          /* where its largest number goes; NULL: nobody asks */
	struct few_bits made; /* by its operation; use NULL: nothing is */
	struct operand_use use;
	size_t nth;            /* the product that it is made for, from 0 on */
	struct work_area area; /* of any but the first */
	bool is_made;
	size_t count; /* elements that were written */
};
bool expected_open(struct device *dev); /* false: no memory */
void expected_close(struct device *dev);
/* What products ask: whether use->amax holds the largest number of the operand that lies there; and
 * what has been made where f is wanted, NULL: nothing. */
bool expected_amax(const struct device *dev, const void *in, const struct stored *shape,
		   const struct operand_use *use);
const struct few_bits *expected_numbers(const struct device *dev, const struct few_bits *f);
/* What they tell: a product has read it, or wrote there anew; it has been made for the next
 * product, in expected->area. */
void expected_read(struct device *dev);
void expected_overwritten(struct device *dev, const void *by);
void expected_put(struct device *dev, const struct few_bits *f);
void expected_forget(struct device *dev);

/* Whether what is written to `out` next, `count` elements, is expected (backend.h: expect) by
 * products that want more of it. Scales are local to a run of at most a warp's vectors of 16 bytes,
 * and end with a run of `unit` elements, 0: there are none, it has only the largest; or past steps
 * give one for all. */
bool cuda_finishing(struct device *dev, const void *out, size_t count, size_t unit,
		    struct finishing *f);
/* lib/expect.c */
void cuda_expect(struct device *dev, const void *out, const struct gemm *product, size_t count);

/* Queues it. A failure is kept. */
void cuda_few_bits(struct device *dev, const struct place *at, const struct few_bits *f);
/* operands/square.cu: the same of up to two, of one operand, one as it lies, one turned, in one
 * pass. False: they are none of those for which it is made, and nothing is queued. */
bool cuda_few_bits_at_once(struct device *dev, const struct place *at, const struct few_bits *f,
			   size_t count);
/* operands/row.cu: the same of one whose rows, as they lie, have one scale each. */
bool cuda_few_bits_of_rows(struct device *dev, const struct place *at, const struct few_bits *f);
/* operands/fp8.cu: codes of FP8, of scales that are there. False: as above. */
bool cuda_fp8_codes(struct device *dev, const struct place *at, const struct few_bits *f,
		    const struct scale *scale);
/* operands/delayed.cu: the rest, where what is made came with the operation that wrote it, by past
 * steps. */
void cuda_few_bits_settle(struct device *dev, const struct place *at, const struct few_bits *made);
/* Bytes of work area that takes. */
size_t cuda_few_bits_area(const struct operand_cast *cast, const struct stored *shape);
/* Bytes of codes without gaps, and of scales, in that layout. */
size_t cuda_code_bytes(enum scale_layout layout, const struct stored *shape);
size_t cuda_scale_bytes(enum scale_layout layout, const struct operand_cast *cast,
			const struct stored *shape);
/* S of the tensor, behind its scales: LAYOUT_E4M3. */
float *cuda_tensor_scale(void *scales, const struct stored *shape);
/* Queues out[0] = alpha a b and out[1] = beta, in the device's memory. */
void cuda_factors(struct device *dev, const struct place *at, float *out, const float *a,
		  const float *b, float alpha, float beta);

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
