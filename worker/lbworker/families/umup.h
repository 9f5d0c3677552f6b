/* SPDX-License-Identifier: MIT */
/* umup.h - u-muP: The Unit-Scaled Maximal Update Parametrization (Blake et al. 2024,
 * arXiv 2407.17465), for llama: settings found on a narrow model hold on a wide one.
 *
 * Every matrix starts with standard deviation 1, and a constant is multiplied into each product.
 * With D width, F width of the feed-forward, C of a head, n layers, T tokens of a sequence:
 *
 *   what        multiplier                     learning rate (of the peak)
 *   embedding   1                              1/sqrt(D)
 *   query, key, value, gate, up    1/sqrt(D)   1/sqrt(D n)
 *   attention's output  r_a/(sqrt(D) s_a)      1/sqrt(D n)
 *   down                r_f/(sqrt(F) s_f)      1/sqrt(F n)
 *   head        a_loss/D                       1
 *   scores      a_attn/C
 *   norms       as they are: they stay at 1, for the paper trains none
 *
 *   s_a = li(1/(1 + 4C/a_attn^2), sqrt(ln T/T), 1)   attention's and SwiGLU's own scales; li(x,l,u)
 *   s_f = li(1/(1 + 1/a_act^2), 1/2, 1/sqrt(2))      = u^x l^(1-x); SwiGLU is up g sigmoid(a_act g)
 *   r_f = a_res sqrt(2/(1 + a_ratio^2)) / sqrt(n),  r_a = a_ratio r_f
 *
 * (tables 2 and 8, appendices B and G). Appendix G writes a layer as x' = (tau f(x) + x)/sqrt(1 +
 * tau^2) with a tau of its own; its products telescope, and what is left is the stream divided by a
 * constant, to which each half adds r f(x): that is computed here, and the norms see the same.
 *
 * Gradients are the true ones. The paper scales them to 1 for the sake of narrow formats, by
 * constants that Adam takes out again; only its epsilon would notice, so it is made relative to
 * umup_unit_gradient. Weight decay is independent of the learning rate: w loses lr(t)/lr(peak) *
 * weight_decay of itself in a step.
 *
 * Folding every multiplier into its matrix gives a plain Llama (`lbworker convert` does). */
#ifndef LBWORKER_UMUP_H
#define LBWORKER_UMUP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct model_shape;

/* all 1 but `context`, unless tuned */
struct umup {
	bool enable;
	/* a_attn, a_act, a_res, a_ratio, a_loss */
	double attention, activation, residual, ratio, loss;
	double context; /* T, of the training; part of the model from then on */
};

/* all 1, and scores 0, for a model without u-muP */
struct umup_scales {
	float qkv, out, gate, up, down, head, scores;
};

struct umup_scales umup_scales(const struct model_shape *shape);
/* -1 when the shape cannot be parametrized so. */
int umup_check(const struct model_shape *shape, struct err *err);

#endif
