/* SPDX-License-Identifier: MIT */
/* noise_scale.c - the two estimates of a step, and their means. */
#include "worker/lbworker/optim/noise_scale.h"

#include <math.h>

/* Some hundred steps count. */
static const double KEPT = 0.99;

void noise_scale_add(struct noise_scale *n, double small_square, double small_tokens, double square,
		     double tokens)
{
	double of_gradient = (tokens * square - small_tokens * small_square) /
			     (tokens - small_tokens);
	double of_noise = (small_square - square) / (1 / small_tokens - 1 / tokens);

	if (!isfinite(of_gradient) || !isfinite(of_noise))
		return;
	n->square = KEPT * n->square + (1 - KEPT) * of_gradient;
	n->trace = KEPT * n->trace + (1 - KEPT) * of_noise;
}

double noise_scale_tokens(const struct noise_scale *n)
{
	return n->square > 0 && n->trace > 0 ? n->trace / n->square : NAN;
}
