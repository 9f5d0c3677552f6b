/* SPDX-License-Identifier: MIT */
/* operand.c - from the largest number of a block to its scale. */
#include "kernels/formats/operand.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct format e4m3fn = { "e4m3fn", FORMAT_FN, 8, 4, 3, 7 };
static const float E4M3_MAX = 448, FOUR_OVER_SIX_MAX = 256;

/* e8m0 has 2^-127..2^127. */
static struct scale power_of_two(int e)
{
	e = e < -127 ? -127 : (e > 127 ? 127 : e);
	return (struct scale){ ldexpf(1, -e), ldexpf(1, e) };
}

/* floor(log2(x)) of a finite x > 0. */
static int floor_log2(double x)
{
	return ilogb(x);
}

static struct scale mx_scale(const struct operand_cast *c, float amax, float most)
{
	int emax = format_emax(&c->format);
	uint32_t bits;

	if (amax == 0)
		return power_of_two(-127);
	if (c->scale == SCALE_FLOOR)
		return power_of_two(floor_log2((double)amax) - emax);
	if (c->scale == SCALE_EVEN) { /* half a last place of the format, as a carry */
		memcpy(&bits, &amax, sizeof(bits));
		bits = (bits + (1u << (22 - c->format.mantissa))) & 0x7f800000u;
		memcpy(&amax, &bits, sizeof(amax));
		return power_of_two((amax > 0 && isfinite(amax) ? floor_log2((double)amax) : 128) -
				    emax);
	}
	double ratio = (double)amax / (double)most;
	int e = floor_log2(ratio);
	return power_of_two(ldexp(1, e) < ratio ? e + 1 : e);
}

/* In fp64, then rounded, as torchao does for the sake of compilers. */
static struct scale fp32_scale(const struct operand_cast *c, float amax, float most)
{
	double quotient = (double)most / fmax((double)amax, 1e-12);
	float multiply = (float)quotient;

	if (c->scale == SCALE_POW2)
		multiply = ldexpf(1, floor_log2((double)multiply));
	return (struct scale){ multiply, 1.0f / multiply };
}

static struct scale e4m3_scale(float amax, float tensor, float most)
{
	const struct format_cast how = { ROUND_NEAREST_EVEN, true };
	float wanted = amax / most / tensor;
	float block = format_decode(&e4m3fn, format_encode(&e4m3fn, wanted, &how, 0));
	float scale = block * tensor;

	return (struct scale){ scale > 0 ? 1.0f / scale : 0.0f, scale };
}

struct scale operand_scale(const struct operand_cast *c, float amax, float tensor, float most)
{
	if (c->scale == SCALE_NONE)
		return (struct scale){ 1, 1 };
	if (!isfinite(amax)) /* shows as NaN in all that shares it, and in the loss */
		return (struct scale){ NAN, NAN };
	switch (c->scale) {
	case SCALE_FP32:
	case SCALE_POW2:
		return fp32_scale(c, amax, most);
	case SCALE_E4M3:
		return e4m3_scale(amax, tensor, most);
	default:
		return mx_scale(c, amax, most);
	}
}

float operand_tensor_scale(const struct operand_cast *c, float amax)
{
	float most = c->four_over_six ? FOUR_OVER_SIX_MAX : E4M3_MAX;
	float scale = amax / (format_max(&c->format) * most);

	return scale > FLT_MIN ? scale : FLT_MIN;
}

void operand_stats_scale(struct operand_stats *stats, float scale)
{
	if (scale > stats->most_scale)
		stats->most_scale = scale;
	if (stats->scales == 0 || scale < stats->least_scale)
		stats->least_scale = scale;
	stats->scales++;
}

void operand_stats_add(struct operand_stats *to, const struct operand_stats *of)
{
	bool first = to->scales == 0;

	to->count += of->count;
	to->saturated += of->saturated;
	to->zeroed += of->zeroed;
	to->error += of->error;
	to->power += of->power;
	to->amax = of->amax > to->amax ? of->amax : to->amax;
	if (of->scales > 0 && (first || of->least_scale < to->least_scale))
		to->least_scale = of->least_scale;
	if (of->most_scale > to->most_scale)
		to->most_scale = of->most_scale;
	to->scales += of->scales;
	for (int i = 0; i < BINADES; i++)
		to->binade[i] += of->binade[i];
}
