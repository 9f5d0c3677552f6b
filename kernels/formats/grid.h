/* SPDX-License-Identifier: MIT */
/* grid.h - rounding to a format in fp32 arithmetic, on hosts and on devices: the same as format.c,
 * to the bit.
 *
 * A number of the exponent E has the unit q = 2^(E-Y). |x|/q is exact, and so is its whole part n,
 * up to 2^(Y+1); what is behind the point says whether n becomes n+1. Then n q is the number, and
 * (E - lowest) 2^Y + n its code, because codes of a format lie in the order of their numbers, also
 * across a carry. bf16 and e8m0 have units below fp32's range: they are done in whole numbers. */
#ifndef KERNELS_FORMATS_GRID_H
#define KERNELS_FORMATS_GRID_H

#include "kernels/formats/float_bits.h"
#include "kernels/formats/format.h"

/* A format as constants of a loop. Fields are exponents in place in the bits of an fp32. */
struct grid {
	uint32_t lowest;             /* field of the least E */
	uint32_t unit;               /* what E's field has more than q's: Y */
	uint32_t inverse;            /* the field of 1/q and that of E together */
	float limit;                 /* from here on |x| is beyond max however it is rounded */
	float max, beyond, inf, nan; /* numbers: the last three for |x| that is so */
	float extra;                 /* what the negative side has beyond max */
};

#ifdef __cplusplus
extern "C" {
#endif
/* grid.c */
struct grid grid_of(const struct format *f, const struct format_cast *how);
#ifdef __cplusplus
}
#endif

/* |x| held within the grid's reach; NaN comes out as the limit. */
FORMAT_INLINE float within_reach(const struct grid *g, float x)
{
	float a = float_of(bits_of(x) & 0x7fffffffu);

	return a < g->limit ? a : g->limit;
}

/* The field of E for a number held so. */
FORMAT_INLINE uint32_t field_of(const struct grid *g, float a)
{
	uint32_t field = bits_of(a) & 0x7f800000u;

	return field > g->lowest ? field : g->lowest;
}

/* n for |x| in units; a whole number, below 2^23. */
FORMAT_INLINE float round_units(float units, enum rounding rounding, uint32_t random)
{
	const float two23 = 8388608.0f; /* adding it leaves no place behind the point */

	if (rounding == ROUND_NEAREST_EVEN)
		return (units + two23) - two23;
	float whole = (float)(int32_t)units;
	if (rounding == ROUND_TOWARD_ZERO)
		return whole;
	return whole + ((float)(int32_t)(random >> 8) * 0x1p-24f < units - whole ? 1.0f : 0.0f);
}

/* The number of the grid that x becomes. -0 stays. */
FORMAT_INLINE float round_to_grid(const struct grid *g, float x, enum rounding rounding,
				  uint32_t random)
{
	float a = within_reach(g, x);
	float extra = x < 0.0f ? g->extra : 0.0f;
	uint32_t field = field_of(g, a);
	float n = round_units(a * float_of(g->inverse - field), rounding, random);
	float value = n * float_of(field - g->unit);

	value = value > g->max + extra ? g->beyond + extra : value;
	value = (bits_of(x) & 0x7fffffffu) == 0x7f800000u ? g->inf + extra : value;
	value = x != x ? g->nan : value;
	return float_of(bits_of(value) | (bits_of(x) & 0x80000000u));
}

/* The same for bf16, whose units begin below what fp32 can divide by. Never saturates: recipes
 * round to it without a scale. */
FORMAT_INLINE uint32_t round_to_bf16(float x, enum rounding rounding, uint32_t random)
{
	uint32_t bits = bits_of(x), up;

	if (rounding == ROUND_NEAREST_EVEN)
		up = 0x7fffu + (bits >> 16 & 1);
	else if (rounding == ROUND_STOCHASTIC) /* u < part, in units of 2^-24 */
		up = (random >> 8) < (bits & 0xffffu) << 8 ? 0x10000u : 0;
	else
		up = 0;
	uint32_t rounded = (bits + up) & 0xffff0000u;
	rounded = (bits & 0x7fffffffu) == 0x7f800000u ? bits : rounded;
	return x != x ? (bits & 0x80000000u) | 0x7fc00000u : rounded;
}

#endif
