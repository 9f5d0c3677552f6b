/* SPDX-License-Identifier: MIT */
/* optimizer.c - the groups of parameters: matrices decay, norms and biases do not; with u-muP each
 * tensor is a group. */
#include "worker/lbworker/optim/optimizer.h"

#include <math.h>

static size_t elements(const struct model_tensor *t)
{
	return t->rows * (t->columns ? t->columns : 1);
}

struct step_control optimizer_control(const struct optimizer *o, const struct optimizer_step *step)
{
	return (struct step_control){
		.norm_limit = step->norm_limit,
		.norm_most = o->max_norm,
		.lr = (float)step->lr,
		.to_m_hat = (float)(1.0 / (1.0 - pow((float)o->beta1, (double)step->update))),
		.to_v_hat = (float)(1.0 / (1.0 - pow((float)o->beta2, (double)step->update))),
		.step = (uint32_t)step->update,
	};
}

struct update {
	struct model *model;
	void *m, *v;
	const struct step_control *control;
	size_t first, end; /* no others are touched */
};

/* Of `count` parameters from a.first on those within the update's. */
static void update_some(const struct update *u, size_t count, struct adamw a)
{
	struct model *model = u->model;
	size_t end = a.first + count < u->end ? a.first + count : u->end;

	a.first = a.first > u->first ? a.first : u->first;
	if (a.first >= end)
		return;
	size_t bytes = a.first * (a.bf16_moments ? sizeof(uint16_t) : sizeof(float));
	model->backend->adamw(model->device, model->weights + a.first, (char *)u->m + bytes,
			      (char *)u->v + bytes, model->grads + a.first, end - a.first, &a,
			      u->control);
}

static void update_each(const struct optimizer *o, const struct update *u, int64_t tokens,
			struct adamw a)
{
	for (size_t i = 0; i < u->model->tensors; i++) {
		const struct model_tensor *t = &u->model->tensor[i];
		if (t->rate <= 0)
			continue;
		a.first = t->offset;
		a.rate = (float)t->rate;
		a.weight_decay = (float)(o->weight_decay / (o->peak_lr * t->rate));
		a.eps = (float)(o->eps * t->unit_gradient / sqrt((double)tokens));
		update_some(u, elements(t), a);
	}
}

void optimizer_update_part(const struct optimizer *o, struct model *model, void *m, void *v,
			   const struct step_control *control, int64_t tokens,
			   struct model_unit part)
{
	const struct update u = { model, m, v, control, part.first, part.first + part.count };
	size_t d = model->decayed;
	struct adamw a = {
		.beta1 = (float)o->beta1,
		.beta2 = (float)o->beta2,
		.eps = (float)o->eps,
		.weight_decay = (float)o->weight_decay,
		.rate = 1,
		.bf16_moments = model->options.bf16_moments,
		.key = o->key,
	};

	if (model->shape.umup.enable) {
		update_each(o, &u, tokens, a);
		return;
	}
	update_some(&u, d, a);
	a.first = d;
	if (!o->decays_all)
		a.weight_decay = 0;
	update_some(&u, model->parameters - d, a);
}

void optimizer_update(const struct optimizer *o, struct model *model, void *m, void *v,
		      struct step_control *control, int64_t tokens)
{
	const struct model_unit all = { 0, model->parameters };

	model->backend->sum_squares(model->device, &control->squares, model->grads,
				    model->parameters);
	model->backend->decide(model->device, control);
	optimizer_update_part(o, model, m, v, control, tokens, all);
}
