/* SPDX-License-Identifier: MIT */
/* operand.h - how an operand of a product becomes numbers of few bits: a format, and scales that
 * bring the operand into its range.
 *
 * An element x under a scale s is stored as the code of x/s; the product multiplies code times s.
 * Sources of the scales, all from a, the largest |x| that shares one:
 *   fp32  s = a / max                      torchao.float8 (a is at least 1e-12 there, as here)
 *   pow2  that, up to a power of two       torchao, rowwise (round_scales_to_power_of_2)
 *   floor 2^(floor(log2 a) - emax)         OCP MX specification 1.0, 6.3
 *   up    the least 2^e with a <= 2^e max  NVIDIA, arXiv 2506.08027
 *   even  as floor, of a rounded to the format's mantissa    torchao, ScaleCalculationMode.EVEN
 *   e4m3  two levels: S = A / (max 448) of the tensor, s = e4m3(a/max / S) S: arXiv 2509.25149,
 *         C */
#ifndef KERNELS_FORMATS_OPERAND_H
#define KERNELS_FORMATS_OPERAND_H

#include <stddef.h>

#include "kernels/formats/format.h"

enum scale_kind {
	SCALE_NONE,
	SCALE_FP32,
	SCALE_POW2,
	SCALE_FLOOR,
	SCALE_UP,
	SCALE_EVEN,
	SCALE_E4M3,
	SCALE_KIND_COUNT
};

enum { OPERAND_ALL = 0, HADAMARD_SIZE = 16, AMAX_HISTORY_MAX = 1024 };

/* One slot of a recipe. What shares a scale: `along` elements of the axis that is summed over,
 * times `across` of the other; OPERAND_ALL: all there are. */
struct operand_cast {
	struct format format; /* bits 0: the operand stays as it is */
	enum rounding rounding;
	enum scale_kind scale;
	uint32_t along, across;
	/* Both operands are turned by the same H D first: H a Hadamard matrix of 16 over sqrt(16),
	 * D fixed signs; the product stays. arXiv 2509.25149, 4.3 */
	bool hadamard;
	/* Each block by a scale that takes its largest to 6 or one that takes it to 4, whichever is
	 * nearer in squares; of e2m1 with e4m3 scales, S with 256 for 448. arXiv 2512.02010 */
	bool four_over_six;
	/* Delayed scaling: a is the largest of so many steps before this one; 0: of this tensor.
	 * arXiv 2209.05433 and Transformer Engine */
	uint16_t history;
};

/* What became of an operand, added up. binade[i]: how many elements have |x/s| from 2^(i +
 * BINADE_FIRST) on and below twice that; those beyond either end are counted there, zeros
 * nowhere. */
enum { BINADES = 64, BINADE_FIRST = -40 };
struct operand_stats {
	uint64_t count, saturated, zeroed; /* zeroed: not zero before */
	uint64_t scales;
	double error, power; /* sums of (x - x')^2 and x^2 */
	float amax, least_scale, most_scale;
	uint64_t binade[BINADES];
};

/* The amax of past steps in floats: the largest so far of the present one, how many there are, and
 * these, newest first. */
enum { AMAX_NOW, AMAX_FILLED, AMAX_PAST };

/* An operand in one product. */
struct operand_use {
	const struct operand_cast *cast;
	struct random_stream random;
	/* In the device's memory: key and step come from there, as a program that is recorded asks;
	 * NULL: from `random` */
	const struct random_stream *now;
	/* Added to; NULL: not wanted. A device of a memory of its own leaves it alone. */
	struct operand_stats *stats;
	/* AMAX_PAST + cast->history floats, at least, in the device's memory; NULL without */
	float *history;
	bool notes; /* the history takes the largest |x| of this tensor, if larger */
	/* One float in the device's memory, of what several products read: the largest |x|.
	 * amax_known: it is there already; else a cast that asks for it (operand_asks_amax) leaves
	 * it. NULL without */
	float *amax;
	bool amax_known;
};

/* Whether the scales depend on the largest |x| of all of the operand, as it is. */
static inline bool operand_asks_amax(const struct operand_cast *c)
{
	bool is_whole = c->along == OPERAND_ALL && c->across == OPERAND_ALL;

	return c->format.bits > 0 && !c->hadamard &&
	       (c->scale == SCALE_E4M3 || (c->scale != SCALE_NONE && is_whole));
}

/* s for the largest |x| of those that share it, and what x is multiplied with to be divided by it.
 * `tensor`: S of SCALE_E4M3; `most`: what the largest is brought to, mostly max. */
struct scale {
	float multiply, scale;
};
void operand_stats_scale(struct operand_stats *stats, float scale); /* one more scale */
void operand_stats_add(struct operand_stats *to, const struct operand_stats *of);
#ifdef __cplusplus
extern "C" {
#endif
struct scale operand_scale(const struct operand_cast *cast, float amax, float tensor, float most);
/* S of an operand whose largest |x| is amax. */
float operand_tensor_scale(const struct operand_cast *cast, float amax);
#ifdef __cplusplus
}
#endif

#endif
