/* SPDX-License-Identifier: MIT */
/* tell.h - what became of a piece of an operand, for people. */
#ifndef KERNELS_CPU_NARROW_TELL_H
#define KERNELS_CPU_NARROW_TELL_H

#include "kernels/cpu/cpu.h"
#include "kernels/formats/operand.h"

enum { TELL_MOST = 256 };

/* Adds `count` elements, at most TELL_MOST, that were `in` and became `out` under scales that
 * repeat (step 0) or go along (step 1); max is the largest number of their format. Nothing of the
 * scales themselves is counted. */
void cpu_tell(struct operand_stats *stats, float max, const float *out, const float *in,
	      size_t count, const struct scale *s, size_t step);

#endif
