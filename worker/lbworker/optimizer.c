/* SPDX-License-Identifier: MIT */
/* optimizer.c - the groups of parameters: matrices decay, norms and biases do not; with u-muP each
 * tensor is a group. */
#include "worker/lbworker/optimizer.h"

#include <math.h>

static size_t elements(const struct model_tensor *t)
{
	return t->rows * (t->columns ? t->columns : 1);
}

/* `count` parameters from a->first on. */
static void update_some(struct model *model, void *m, void *v, size_t count, const struct adamw *a)
{
	size_t bytes = a->first * (a->bf16_moments ? sizeof(uint16_t) : sizeof(float));

	model->backend->adamw(model->device, model->weights + a->first, (char *)m + bytes,
			      (char *)v + bytes, model->grads + a->first, count, a);
}

static void update_each(const struct optimizer *o, struct model *model, void *m, void *v,
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
		update_some(model, m, v, elements(t), &a);
	}
}

void optimizer_update(const struct optimizer *o, struct model *model, void *m, void *v,
		      const struct optimizer_step *step)
{
	bool clip = o->max_norm > 0 && step->norm > o->max_norm;
	size_t d = model->decayed;
	struct adamw a = {
		.lr = (float)step->lr, .beta1 = (float)o->beta1, .beta2 = (float)o->beta2,
		.eps = (float)o->eps, .weight_decay = (float)o->weight_decay,
		.grad_scale = clip ? (float)(o->max_norm / step->norm) : 1.0f,
		.step = step->update, .bf16_moments = model->options.bf16_moments, .key = o->key,
	};

	if (model->shape.umup.enable) {
		update_each(o, model, m, v, step, a);
		return;
	}
	update_some(model, m, v, d, &a);
	a.first = d;
	a.weight_decay = 0;
	update_some(model, m, v, model->parameters - d, &a);
}
