/* SPDX-License-Identifier: MIT */
/* optimizer.c - the groups of parameters: matrices decay, norms and biases do not; with u-muP each
 * tensor is a group; and the way of weights and moments of few bits into an update and out of it.
 *
 * Devices that keep few bits (weights_narrow, moments_put) are done when a call returns and the
 * host may look into their memory (backend.h), so the control can be asked whether the step
 * counts. */
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
	const struct optimizer *optimizer;
	struct model *model;
	void *m, *v;
	size_t origin; /* the parameter that m and v begin with */
	const struct step_control *control;
	int64_t tokens;
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
		size_t bytes = (a.first - u->origin) *
			       (a.bf16_moments ? sizeof(uint16_t) : sizeof(float));
		run = of_one_type(model, a.first, end - a.first, &a.narrow_gradient);
		model->backend->adamw(model->device, model->weights + a.first, (char *)u->m + bytes,
				      (char *)u->v + bytes, model_grad(model, a.first), run, &a,
				      u->control);
	}
}

void optimizer_squares(struct model *m, double *sum)
{
	size_t run;
	bool narrow;

	for (size_t at = 0; at < m->parameters; at += run) {
		run = of_one_type(m, at, m->parameters - at, &narrow);
		m->backend->sum_squares(m->device, sum, model_grad(m, at), run, narrow, at > 0);
	}
}

static void update_each(const struct update *u, struct adamw a)
{
	const struct optimizer *o = u->optimizer;

	for (size_t i = 0; i < u->model->tensors; i++) {
		const struct model_tensor *t = &u->model->tensor[i];
		if (t->rate <= 0)
			continue;
		a.first = t->offset;
		a.rate = (float)t->rate;
		a.weight_decay = (float)(o->weight_decay / (o->peak_lr * t->rate));
		a.eps = (float)(o->eps * t->unit_gradient / sqrt((double)u->tokens));
		update_some(u, elements(t), a);
	}
}

/* A bias that no gradient moves does not decay either. */
static void update_vectors(const struct update *u, struct adamw a)
{
	const struct model *m = u->model;
	const float decay = a.weight_decay;

	if (!m->loads || decay == 0) {
		update_some(u, m->parameters - m->decayed, a);
		return;
	}
	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &m->tensor[i];
		a.first = t->offset;
		a.weight_decay = t->is_balance ? 0 : decay;
		if (t->columns == 0)
			update_some(u, elements(t), a);
	}
}

static void update_range(const struct update *u)
{
	const struct optimizer *o = u->optimizer;
	size_t d = u->model->decayed;
	struct adamw a = {
		.beta1 = (float)o->beta1,
		.beta2 = (float)o->beta2,
		.eps = (float)o->eps,
		.weight_decay = (float)o->weight_decay,
		.rate = 1,
		.bf16_moments = u->model->options.moments == MOMENTS_BF16,
		.key = o->key,
	};

	if (u->model->shape.umup.enable) {
		update_each(u, a);
		return;
	}
	update_some(u, d, a);
	a.first = d;
	if (!o->decays_all)
		a.weight_decay = 0;
	update_vectors(u, a);
}

/* --- few bits --------------------------------------------------------------------------------- */

/* One of both moments through its window; u->origin is a multiple of MOMENTS_SHARE. */
static void through_window(const struct update *u, const struct kept *k, int which, bool is_back)
{
	const struct backend *be = u->model->backend;
	char *moment = which == 0 ? k->m : k->v;
	uint8_t *codes = (uint8_t *)moment + u->origin;
	float *scales = (float *)(void *)(moment + kept_scales_at(u->model->parameters)) +
			u->origin / MOMENTS_SHARE;
	size_t count = u->end - u->origin;

	if (is_back)
		be->moments_put(u->model->device, codes, scales, k->window[which], count,
				kept_map(which == 0));
	else
		be->moments_get(u->model->device, k->window[which], codes, scales, count,
				kept_map(which == 0));
}

static void update_by_windows(struct update u, const struct kept *k)
{
	size_t end = u.end;

	for (; u.first < end; u.first = u.end) {
		u.end = end - u.first < KEPT_WINDOW ? end : u.first + KEPT_WINDOW;
		u.origin = u.first;
		through_window(&u, k, 0, false);
		through_window(&u, k, 1, false);
		u.m = k->window[0];
		u.v = k->window[1];
		update_range(&u);
		through_window(&u, k, 0, true);
		through_window(&u, k, 1, true);
	}
}

/* control: NULL before the first step; of weights in fp32 it is not looked at, as it may lie in a
 * GPU's memory. */
static void narrow(struct model *m, const struct kept *k, struct model_unit own, uint64_t key,
		   const struct step_control *control)
{
	enum { TENSOR = 2 }; /* 0 and 1 are the moments' */

	if (m->options.weights == WEIGHTS_FP32)
		return;
	uint32_t step = control ? control->step : 0;
	bool by_chance = m->options.weights == WEIGHTS_STOCHASTIC && step > 0;
	const struct encoding how = { .how.rounding = by_chance ? ROUND_STOCHASTIC
								: ROUND_NEAREST_EVEN,
				      .random = { key, TENSOR, step },
				      .first = own.first };

	m->backend->weights_narrow(m->device, m->weights + own.first,
				   k && k->lost ? k->lost + own.first : NULL, own.count, &how);
}

void optimizer_round_weights(struct model *m, struct model_unit own)
{
	narrow(m, NULL, own, 0, NULL);
}

void optimizer_average(const struct optimizer *o, struct model *m, const struct kept *k,
		       int64_t averaged, struct model_unit own)
{
	const float share = averaged > 0 ? (float)(1 - o->mean_decay) : 1.0f;

	m->backend->average(m->device, k->mean + own.first, m->weights + own.first, own.count,
			    share);
}

/* Devices of few bits only: of others nobody asks the control. */
static bool keeps_few_bits(const struct model *m)
{
	return m->options.weights != WEIGHTS_FP32 || m->options.moments == MOMENTS_8BIT;
}

static void update_part(const struct update *u, const struct kept *k)
{
	struct model *m = u->model;
	const struct model_unit own = { u->first, u->end - u->first };

	if (keeps_few_bits(m) && u->control->is_left_out)
		return;
	if (k->lost)
		m->backend->weights_widen(m->device, m->weights + own.first, k->lost + own.first,
					  own.count);
	if (m->options.moments == MOMENTS_8BIT)
		update_by_windows(*u, k);
	else
		update_range(u);
	narrow(m, k, own, u->optimizer->key, u->control);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void update_by_muon(const struct update *u, const struct kept *k, size_t unit,
			   const struct optimizer_gather *by)
{
	struct model *m = u->model;
	const struct model_unit own = { u->first, u->end - u->first };

	if (u->control->is_left_out)
		return;
	muon_momentum(&u->optimizer->muon, m, k->m, own, u->control->grad_scale);
	if (by->gather)
		by->gather(by->arg, unit);
	if (k->lost)
		m->backend->weights_widen(m->device, m->weights + own.first, k->lost + own.first,
					  own.count);
	muon_apply(&u->optimizer->muon, m, unit, own, u->control->lr,
		   (float)u->optimizer->weight_decay, k->work);
	if (by->release)
		by->release(by->arg, unit);
	narrow(m, k, own, u->optimizer->key, u->control);
}

void optimizer_update_unit(const struct optimizer *o, struct model *model, const struct kept *k,
			   const struct step_control *control, int64_t tokens, size_t unit,
			   struct model_unit own, const struct optimizer_gather *gather)
{
	const struct update u = { .optimizer = o,
				  .model = model,
				  .m = k->m,
				  .v = k->v,
				  .control = control,
				  .tokens = tokens,
				  .first = own.first,
				  .end = own.first + own.count };

	if (o->muon.enable && muon_takes(model, unit))
		update_by_muon(&u, k, unit, gather);
	else
		update_part(&u, k);
}

void optimizer_update(const struct optimizer *o, struct model *model, const struct kept *k,
		      struct step_control *control, int64_t tokens)
{
	const struct optimizer_gather nobody = { 0 };
	const struct model_unit all = { 0, model->parameters };
	const size_t last = model->units - 1; /* any that is no layer */

	optimizer_squares(model, &control->squares);
	model->backend->decide(model->device, control);
	if (!o->muon.enable) {
		optimizer_update_unit(o, model, k, control, tokens, last, all, &nobody);
		return;
	}
	for (size_t u = 0; u < model->units; u++)
		optimizer_update_unit(o, model, k, control, tokens, u, model->unit[u], &nobody);
}
