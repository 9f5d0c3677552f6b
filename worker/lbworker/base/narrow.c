/* SPDX-License-Identifier: MIT */
/* narrow.c - bit work on whole arrays; speed is the disk's. */
#include "worker/lbworker/base/narrow.h"

#include <math.h>
#include <string.h>

#include "kernels/formats/float_bits.h"

static uint16_t half_at(const void *from, size_t i)
{
	uint16_t half;

	memcpy(&half, (const char *)from + i * sizeof(half), sizeof(half));
	return half;
}

void narrow_from_bf16(float *to, const void *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = float_of((uint32_t)half_at(from, i) << 16);
}

static float widen_f16(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
	uint32_t exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu;

	if (exponent == 0x1f)
		return float_of(sign | 0x7f800000u | fraction << 13);
	if (exponent == 0) /* zero or subnormal: fraction * 2^-24 */
		return sign ? -ldexpf((float)fraction, -24) : ldexpf((float)fraction, -24);
	return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

void narrow_from_f16(float *to, const void *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = widen_f16(half_at(from, i));
}

/* bits / 2^shift, to nearest, ties to even */
static uint32_t shift_rounded(uint32_t bits, unsigned shift)
{
	uint32_t half = (1u << (shift - 1)) - 1;

	return (bits + half + (bits >> shift & 1u)) >> shift;
}

void narrow_to_bf16(uint16_t *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = bits_of(from[i]);
		to[i] = isnan(from[i]) ? (uint16_t)(bits >> 16 | 0x40u)
				       : (uint16_t)shift_rounded(bits, 16);
	}
}

static uint16_t narrow_f16(float x)
{
	uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
	uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);

	if (magnitude > 0x7f800000u) /* NaN */
		return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
	if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (magnitude < 0x33000000u) /* below 2^-25 */
		return sign;
	if (magnitude < 0x38800000u) { /* subnormal half: fraction with its hidden bit */
		unsigned shift = 126u - (magnitude >> 23);
		uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
		return (uint16_t)(sign | shift_rounded(fraction, shift));
	}
	return (uint16_t)(sign | shift_rounded(magnitude - 0x38000000u, 13));
}

void narrow_to_f16(uint16_t *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = narrow_f16(from[i]);
}
