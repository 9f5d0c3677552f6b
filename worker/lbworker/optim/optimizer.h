/* SPDX-License-Identifier: MIT */
/* optim/ - what becomes of a gradient: the update, its learning rate, and steps left out.
 *
 * optimizer.h - one update of all weights: the gradient's norm clipped, then AdamW (backend.h).
 * With u-muP each matrix has a learning rate of its own, and decays independently of it
 * (umup.h). */
#ifndef LBWORKER_OPTIMIZER_H
#define LBWORKER_OPTIMIZER_H

#include "worker/lbworker/model/model.h"

struct optimizer {
	double beta1, beta2, eps;
	double weight_decay; /* of matrices */
	bool decays_all;     /* and of norms and biases */
	double max_norm;     /* 0: gradients are not clipped */
	double peak_lr;      /* of the schedule; for u-muP */
	uint64_t key;        /* of the random numbers that round bf16 moments */
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
 * update of all weights. m and v are the moments, with the layout of the weights and the type of
 * model->options; tokens: that the gradient is the mean of, for u-muP. */
void optimizer_update(const struct optimizer *optimizer, struct model *model, void *m, void *v,
		      struct step_control *control, int64_t tokens);

/* The update alone, of a part of the weights, as a control says that has been decided. */
void optimizer_update_part(const struct optimizer *optimizer, struct model *model, void *m, void *v,
			   const struct step_control *control, int64_t tokens,
			   struct model_unit part);

#endif
