/* SPDX-License-Identifier: MIT */
/* noise_scale.h - how many tokens of a batch it takes until gradients say more than they scatter:
 * the "simple" noise scale of McCandlish et al. 2018 (arXiv 1812.06162, appendix A.1), B = tr(S) /
 * |G|^2.
 *
 * The squared norms of two gradients, one of a small and one of a large batch, tell |G|^2 and tr(S)
 * without bias; both are averaged over steps before they are divided. */
#ifndef LBWORKER_NOISE_SCALE_H
#define LBWORKER_NOISE_SCALE_H

/* Part of a checkpoint. */
struct noise_scale {
	double square, trace; /* running means of |G|^2 and of tr(S), times the same factor */
};

/* A step: squared norms of the mean gradient of so many tokens; small_tokens < tokens. */
void noise_scale_add(struct noise_scale *noise, double small_square, double small_tokens,
		     double square, double tokens);
/* In tokens; NAN while the means say none (|G|^2 is not above 0). */
double noise_scale_tokens(const struct noise_scale *noise);

#endif
