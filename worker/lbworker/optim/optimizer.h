/* SPDX-License-Identifier: MIT */
/* optim/ - what becomes of a gradient: the update, its learning rate, and steps left out.
 *
 * optimizer.h - one update of all weights: the gradient's norm clipped, then AdamW (backend.h), or
 * Muon (muon.h) for the matrices of layers and AdamW for the rest. With u-muP each matrix has a
 * learning rate of its own, and decays independently of it (umup.h). */
#ifndef LBWORKER_OPTIMIZER_H
#define LBWORKER_OPTIMIZER_H

#include "worker/lbworker/model/model.h"
#include "worker/lbworker/optim/kept.h"
#include "worker/lbworker/optim/muon.h"

struct optimizer {
	double beta1, beta2, eps;
	double weight_decay; /* of matrices */
	bool decays_all;     /* and of norms and biases */
	double max_norm;     /* 0: gradients are not clipped */
	double peak_lr;      /* of the schedule; for u-muP */
	double mean_decay;   /* of the mean of weights; 0: there is none */
	uint64_t key;        /* of the random numbers that round bf16 moments and weights */
	struct muon_rules muon;
};

struct optimizer_step {
	double lr;
	int64_t update;    /* counts from 1 */
	double norm_limit; /* a larger norm leaves the step out; or INFINITY */
};

/* The host's part of a step's control; the caller brings it to the device. */
struct step_control optimizer_control(const struct optimizer *optimizer,
				      const struct optimizer_step *step);
/* Queues the norm of model->grads, the control (device memory, where loss_sum is already) and the
 * update of all weights. kept: for that model; tokens: that the gradient is the mean of, for
 * u-muP. */
void optimizer_update(const struct optimizer *optimizer, struct model *model,
		      const struct kept *kept, struct step_control *control, int64_t tokens);

/* *sum (device memory) = the squares of all gradients that are here. */
void optimizer_squares(struct model *model, double *sum);

/* Who brings all of a unit's gradient here, and takes what is not ours away again; NULL members:
 * all is here. */
struct optimizer_gather {
	void (*gather)(void *arg, size_t unit);
	void (*release)(void *arg, size_t unit);
	void *arg;
};
/* The update alone, of `own` of a unit, as a control says that has been decided. */
void optimizer_update_unit(const struct optimizer *optimizer, struct model *model,
			   const struct kept *kept, const struct step_control *control,
			   int64_t tokens, size_t unit, struct model_unit own,
			   const struct optimizer_gather *gather);

/* The weights of `own` into their mean, behind an update that counted; `averaged` before it: with
 * the first one they are the mean. */
void optimizer_average(const struct optimizer *optimizer, struct model *model,
		       const struct kept *kept, int64_t averaged, struct model_unit own);

/* First weights become what is kept of weights (enum weight_kind): those of `own`. */
void optimizer_round_weights(struct model *model, struct model_unit own);

#endif
