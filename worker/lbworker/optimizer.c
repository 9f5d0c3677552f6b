/* SPDX-License-Identifier: MIT */
/* optimizer.c - the groups of parameters: matrices decay, norms and biases do not; with u-muP each
 * tensor is a group. */
#include "worker/lbworker/optimizer.h"

#include <math.h>

static size_t elements(const struct model_tensor *t)
{
	return t->rows * (t->columns ? t->columns : 1);
}

static void update_each(const struct optimizer *o, struct model *model, float *m, float *v,
			const struct optimizer_step *step, struct adamw a)
{
	for (size_t i = 0; i < model->tensors; i++) {
		const struct model_tensor *t = &model->tensor[i];
		if (t->rate <= 0)
			continue;
		a.first = t->offset;
		a.lr = (float)(step->lr * t->rate);
		a.weight_decay = (float)(o->weight_decay / (o->peak_lr * t->rate));
		a.eps = (float)(o->eps * t->unit_gradient / sqrt((double)step->tokens));
		model->backend->adamw(model->device, model->weights + t->offset, m + t->offset,
				      v + t->offset, model->grads + t->offset, elements(t), &a);
	}
}

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

	if (model->shape.umup.enable) {
		update_each(o, model, m, v, step, a);
		return;
	}
	model->backend->adamw(model->device, model->weights, m, v, model->grads, d, &a);
	a.weight_decay = 0;
	model->backend->adamw(model->device, model->weights + d, m + d, v + d, model->grads + d,
			      model->parameters - d, &a);
}
