/* SPDX-License-Identifier: MIT */
/* scale.h - from the largest number of a block to its scale (operand.h has the formulas), on hosts
 * and on devices. */
#ifndef KERNELS_FORMATS_SCALE_H
#define KERNELS_FORMATS_SCALE_H

#include "kernels/formats/grid.h"
#include "kernels/formats/operand.h"

/* What of an operand's cast its scales depend on. */
struct scale_rule {
	enum scale_kind kind;
	int emax, mantissa; /* of the format */
	float max;
	bool four_over_six;
};

#ifdef __cplusplus
extern "C" {
#endif
/* operand.c */
struct scale_rule scale_rule_of(const struct operand_cast *cast);
#ifdef __cplusplus
}
#endif

FORMAT_INLINE bool is_finite_bits(float x)
{
	return (bits_of(x) & 0x7f800000u) != 0x7f800000u;
}

/* 2^e of -127..127 */
FORMAT_INLINE float exp2_whole(int e)
{
	return float_of(e > -127 ? (uint32_t)(e + 127) << 23 : 0x400000u);
}

/* e8m0 has 2^-127..2^127. */
FORMAT_INLINE struct scale power_of_two(int e)
{
	struct scale s;

	e = e < -127 ? -127 : (e > 127 ? 127 : e);
	s.multiply = exp2_whole(-e);
	s.scale = exp2_whole(e);
	return s;
}

/* floor(log2(x)) of an x > 0 that is a float or the quotient of two; whether it is a power of
 * two. */
FORMAT_INLINE int floor_log2(double x, bool *is_power)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	*is_power = (bits & 0xfffffffffffffull) == 0;
	return (int)(bits >> 52) - 1023;
}

FORMAT_INLINE struct scale mx_scale(const struct scale_rule *r, float amax, float most)
{
	bool is_power;

	if (amax == 0)
		return power_of_two(-127);
	if (r->kind == SCALE_FLOOR)
		return power_of_two(floor_log2((double)amax, &is_power) - r->emax);
	if (r->kind == SCALE_EVEN) { /* half a last place of the format, as a carry */
		amax = float_of((bits_of(amax) + (1u << (22 - r->mantissa))) & 0x7f800000u);
		if (amax == 0) /* it was below all normal numbers */
			return power_of_two(-127);
		return power_of_two(
			(is_finite_bits(amax) ? floor_log2((double)amax, &is_power) : 128) -
			r->emax);
	}
	int e = floor_log2((double)amax / (double)most, &is_power);
	return power_of_two(is_power ? e : e + 1);
}

/* In fp64, then rounded, as torchao does for the sake of compilers. */
FORMAT_INLINE struct scale fp32_scale(const struct scale_rule *r, float amax, float most)
{
	struct scale s;
	bool is_power;

	s.multiply = (float)((double)most / ((double)amax > 1e-12 ? (double)amax : 1e-12));
	if (r->kind == SCALE_POW2)
		s.multiply = power_of_two(floor_log2((double)s.multiply, &is_power)).scale;
	s.scale = 1.0f / s.multiply;
	return s;
}

/* To e4m3fn, to nearest, held within it. */
FORMAT_INLINE float round_to_e4m3(float x)
{
	struct grid g;

	g.lowest = 121u << 23;
	g.unit = 3u << 23;
	g.inverse = 257u << 23;
	g.limit = 512;
	g.max = g.beyond = g.inf = 448;
	g.nan = float_of(0x7fc00000u);
	g.extra = 0;
	return round_to_grid(&g, x, ROUND_NEAREST_EVEN, 0);
}

/* 1/s of the least scales is beyond all numbers, and 0 times that would be none. */
FORMAT_INLINE struct scale e4m3_scale(float amax, float tensor, float most)
{
	const float largest = float_of(0x7f7fffffu);
	struct scale s;

	s.scale = round_to_e4m3(amax / most / tensor) * tensor;
	s.multiply = s.scale > 0 ? 1.0f / s.scale : 0.0f;
	s.multiply = s.multiply > largest ? largest : s.multiply;
	return s;
}

/* The code of a scale of that kind. NaN is 255 there, and 127. */
FORMAT_INLINE uint32_t e8m0_code(float scale)
{
	return bits_of(scale) >> 23 & 0xffu;
}

FORMAT_INLINE uint32_t e4m3_code(float scale)
{
	const uint32_t least = 121u << 3; /* the least normal number's exponent and mantissa */

	if (scale != scale)
		return 0x7f;
	if (bits_of(scale) >> 20 < least)
		return (uint32_t)(int32_t)(scale * 512.0f);
	return (bits_of(scale) >> 20) - least + 8;
}

/* e4m3 of a scale of two levels, which is that times `tensor`. */
FORMAT_INLINE uint32_t level_code(float scale, float tensor)
{
	return e4m3_code(round_to_e4m3(scale / tensor));
}

FORMAT_INLINE struct scale scale_by_rule(const struct scale_rule *r, float amax, float tensor,
					 float most)
{
	struct scale s;

	s.multiply = s.scale = 1;
	if (r->kind == SCALE_NONE)
		return s;
	/* shows as NaN in all that shares it, and in the loss */
	s.multiply = s.scale = float_of(0x7fc00000u);
	if (!is_finite_bits(amax))
		return s;
	if (r->kind == SCALE_FP32 || r->kind == SCALE_POW2)
		return fp32_scale(r, amax, most);
	if (r->kind == SCALE_E4M3)
		return e4m3_scale(amax, tensor, most);
	return mx_scale(r, amax, most);
}

/* S of an operand whose largest |x| is amax. */
FORMAT_INLINE float tensor_scale_by_rule(const struct scale_rule *r, float amax)
{
	const float least = 0x1p-126f;
	float scale = amax / (r->max * (r->four_over_six ? 256.0f : 448.0f));

	return scale > least ? scale : least;
}

/* Delayed scaling: notes this tensor's amax, where `notes`, and answers with the largest of the
 * past, of which `length` are looked at; without a past, with this. */
FORMAT_INLINE float delayed_amax(float *history, uint32_t length, bool notes, float amax)
{
	float most = 0;

	if (history && notes && (amax > history[AMAX_NOW] || amax != amax))
		history[AMAX_NOW] = amax;
	if (!history || length == 0)
		return amax;
	for (uint32_t i = 0; i < length && (float)i < history[AMAX_FILLED]; i++)
		most = history[AMAX_PAST + i] > most ? history[AMAX_PAST + i] : most;
	return history[AMAX_FILLED] > 0 ? most : amax;
}

/* Between two steps: what is noted becomes the newest of `length` past ones. */
FORMAT_INLINE void amax_into_past(float *history, uint32_t length)
{
	float now = history[AMAX_NOW];

	history[AMAX_NOW] = 0;
	/* the operand was not used; or the step is left out, and must not spoil those that
	 * follow */
	if (now == 0 || !(now - now == 0))
		return;
	for (uint32_t i = length - 1; i > 0; i--)
		history[AMAX_PAST + i] = history[AMAX_PAST + i - 1];
	history[AMAX_PAST] = now;
	if (history[AMAX_FILLED] < (float)length)
		history[AMAX_FILLED] += 1;
}

#endif
