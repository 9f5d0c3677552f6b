/* SPDX-License-Identifier: MIT */
/* float_bits.h - the bits of an fp32 number, on hosts and on devices. */
#ifndef KERNELS_FORMATS_FLOAT_BITS_H
#define KERNELS_FORMATS_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

#include "kernels/formats/random.h"

FORMAT_INLINE uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

FORMAT_INLINE float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

#endif
