/* SPDX-License-Identifier: MIT */
/* halves.cuh - a weight as bf16 and the rest of its bits (split.cu says how). */
#ifndef KERNELS_CUDA_HALVES_CUH
#define KERNELS_CUDA_HALVES_CUH

#include "kernels/cuda/ops/kernel.cuh"

struct halves {
	uint16_t narrow, lower;
};

DEVICE struct halves halves_of_float(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u) /* would round to 0 */
		bits = 0x7fc00000u;
	return halves{ (uint16_t)((bits + 0x8000u) >> 16), (uint16_t)bits };
}

DEVICE float float_of_halves(struct halves h)
{
	uint32_t bits = ((uint32_t)h.narrow << 16) + (uint32_t)(int32_t)(int16_t)h.lower;
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

#endif
