/* SPDX-License-Identifier: MIT */
/* muon.h - Muon (Jordan et al. 2024), as torch.optim.Muon has it: the momentum's direction with all
 * singular values brought near 1.
 *
 *   B = momentum B + g;   D = g + momentum B with Nesterov, else B
 *   X = D/|D|;  five times: A = X X^T;  X = a X + (b A + c A A) X;   a, b, c of Jordan's quintic
 *   w -= lr (weight_decay w + rate X)
 *
 * rate: "original" sqrt(max(1, out/in)); "match_rms_adamw" 0.2 sqrt(max(out, in)), with which
 * AdamW's learning rate serves (Moonshot, arXiv 2502.16982). The iteration is in fp32 here, in bf16
 * there. It needs whole matrices: each rank that holds a part of one works it out whole, so all
 * have the same bits. */
#ifndef LBWORKER_MUON_H
#define LBWORKER_MUON_H

#include "worker/lbworker/model/model.h"

enum muon_rate { MUON_MATCH_RMS_ADAMW, MUON_ORIGINAL };

struct muon_rules {
	bool enable, nesterov;
	double momentum;
	int steps; /* of the iteration */
	enum muon_rate rate;
};

/* Of `own`: B (in momentum, fp32), and D, which replaces the gradient. Memory that the host may
 * look into. */
void muon_momentum(const struct muon_rules *rules, struct model *m, float *momentum,
		   struct model_unit own, float grad_scale);
/* Updates `own` of the unit's weights, all of whose D is there; work: muon_floats() of them. */
void muon_apply(const struct muon_rules *rules, struct model *model, size_t unit,
		struct model_unit own, float lr, float weight_decay, float *work);
size_t muon_floats(const struct model *model);
/* Whether a unit is of those that Muon updates: matrices of layers. All of them; they lie in one
 * piece. */
bool muon_takes(const struct model *model, size_t unit);
struct model_unit muon_range(const struct model *model);

#endif
