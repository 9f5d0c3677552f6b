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

/* How many of `count` parameters from `at` on have gradients of one type. */
static size_t of_one_type(const struct model *m, size_t at, size_t count, bool *is_narrow)
{
	size_t end = at < m->narrow       ? m->narrow
		     : at < m->narrow_end ? m->narrow_end
					  : m->parameters;

	*is_narrow = at >= m->narrow && at < m->narrow_end;
	return end - at < count ? end - at : count;
}

/* Of `count` parameters from a.first on those within the update's. */
static void update_some(const struct update *u, size_t count, struct adamw a)
{
	struct model *model = u->model;
	size_t run, end = a.first + count < u->end ? a.first + count : u->end;

	a.first = a.first > u->first ? a.first : u->first;
	for (; a.first < end; a.first += run) {
		size_t bytes = a.first * (a.bf16_moments ? sizeof(uint16_t) : sizeof(float));
		run = of_one_type(model, a.first, end - a.first, &a.narrow_gradient);
		model->backend->adamw(model->device, model->weights + a.first, (char *)u->m + bytes,
				      (char *)u->v + bytes, model_grad(model, a.first), run, &a,
				      u->control);
	}
}

static void sum_squares(struct model *m, double *sum)
{
	size_t run;
	bool narrow;

	for (size_t at = 0; at < m->parameters; at += run) {
		run = of_one_type(m, at, m->parameters - at, &narrow);
		m->backend->sum_squares(m->device, sum, model_grad(m, at), run, narrow, at > 0);
	}
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

	sum_squares(model, &control->squares);
	model->backend->decide(model->device, control);
	optimizer_update_part(o, model, m, v, control, tokens, all);
}
