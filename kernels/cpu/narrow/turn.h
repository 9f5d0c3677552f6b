/* SPDX-License-Identifier: MIT */
/* narrow/ - numbers of few bits: vectors of codes, operands of products, and what optimizers keep.
 *
 * turn.h - the random Hadamard transform of an operand. */
#ifndef KERNELS_CPU_NARROW_TURN_H
#define KERNELS_CPU_NARROW_TURN_H

#include "kernels/cpu/cpu.h"

/* Each HADAMARD_SIZE elements that are summed over, by H D of operand.h; what is left behind the
 * last whole 16 stays. out [rows, columns] has no gaps. Not in place. */
void cpu_turn(struct device *dev, float *out, const float *in, const struct stored *shape);

#endif
