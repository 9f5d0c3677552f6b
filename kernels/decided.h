/* SPDX-License-Identifier: MIT */
/* decided.h - one formula for all devices: what becomes of an update, from what it was summed up to. */
#ifndef KERNELS_DECIDED_H
#define KERNELS_DECIDED_H

#include <math.h>

#include "kernels/backend.h"

#ifdef __CUDACC__
__host__ __device__
#endif
static inline struct decision decided(struct decision d)
{
	double norm = sqrt(d.squares);

	d.is_left_out = !isfinite(d.loss_sum) || !isfinite(norm) || norm > d.norm_limit;
	d.grad_scale = d.norm_most > 0 && norm > d.norm_most ? (float)(d.norm_most / norm) : 1.0f;
	return d;
}

#endif
