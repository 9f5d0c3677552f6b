/* SPDX-License-Identifier: MIT */
/* step_control.h - one formula for all devices: what becomes of an update, from what it was summed
 * up to. */
#ifndef KERNELS_STEP_CONTROL_H
#define KERNELS_STEP_CONTROL_H

#include <math.h>

#include "kernels/backend.h"

#if defined(__CUDACC__) || defined(__HIP__)
__host__ __device__
#endif
	static inline struct step_control
	step_control_decide(struct step_control d)
{
	double norm = sqrt(d.squares);

	d.is_left_out = !isfinite(d.loss_sum) || !isfinite(norm) || norm > d.norm_limit;
	d.grad_scale = d.norm_most > 0 && norm > d.norm_most ? (float)(d.norm_most / norm) : 1.0f;
	return d;
}

#endif
