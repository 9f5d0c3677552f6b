/* SPDX-License-Identifier: MIT */
/* optimizer.c - the two groups of parameters: matrices decay, norms and biases do not. */
#include "worker/lbworker/optimizer.h"

void optimizer_update(const struct optimizer *o, struct model *model, float *m, float *v,
		      const struct optimizer_step *step)
{
	bool clip = o->max_norm > 0 && step->norm > o->max_norm;
	size_t d = model->decayed;
	struct adamw a = {
		.lr = (float)step->lr, .beta1 = (float)o->beta1, .beta2 = (float)o->beta2,
		.eps = (float)o->eps, .weight_decay = (float)o->weight_decay,
		.grad_scale = clip ? (float)(o->max_norm / step->norm) : 1.0f,
		.step = step->update,
	};

	model->backend->adamw(model->device, model->weights, m, v, model->grads, d, &a);
	a.weight_decay = 0;
	model->backend->adamw(model->device, model->weights + d, m + d, v + d, model->grads + d,
			      model->parameters - d, &a);
}
