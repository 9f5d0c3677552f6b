/* SPDX-License-Identifier: MIT */
/* cost.c - what a model takes: parameters, those that are multiplied, bytes. */
#include "worker/lbworker/model/activations.h"
#include "worker/lbworker/model/model.h"

static size_t parameters_here(const struct model *m)
{
	size_t count = 0;

	for (size_t u = 0; u < m->units; u++)
		count += model_unit_here(m, u).count;
	return count;
}

static uint64_t tables_of(const struct model *m)
{
	const struct model_shape *s = &m->shape;
	uint64_t tables = s->vocab * s->dim;

	if (m->family->learned_positions)
		tables += s->positions * s->dim;
	return tables;
}

/* Of experts that a token does not go to. */
static uint64_t idle_of(const struct model *m)
{
	const struct model_experts *e = &m->shape.experts;
	uint64_t layers = e->count > 0 ? m->shape.layers - e->dense : 0;

	return layers * (e->count - e->top) * (m->family->gated ? 3 : 2) * m->shape.dim * e->ffn;
}

/* Tables are looked up, everything else of two sides is multiplied; a tied head is both. */
uint64_t model_multiplied(const struct model *m)
{
	const struct model_shape *s = &m->shape;

	return m->decayed - tables_of(m) + (s->tied ? s->vocab * s->dim : 0) - idle_of(m);
}

uint64_t model_active(const struct model *m)
{
	return m->parameters - idle_of(m);
}

/* A stage has the tables, or it does not; and a head that is no table. */
static uint64_t multiplied_here(const struct model *m)
{
	uint64_t elsewhere = m->parameters - parameters_here(m);

	return model_multiplied(m) - elsewhere + (model_is_first_stage(m) ? 0 : tables_of(m));
}

int model_cost(struct model_cost *out, const struct model_shape *shape,
	       const struct model_options *options, struct err *err)
{
	struct model *m;

	*out = (struct model_cost){ 0 };
	if (model_plan(&m, shape, options, err))
		return -1;
	out->parameters = parameters_here(m);
	out->active = out->parameters - idle_of(m);
	out->multiplied = multiplied_here(m);
	out->matrices = out->parameters - (m->parameters - m->decayed);
	out->gradient_bytes = model_grads_bytes(m) -
			      (m->parameters - out->parameters) * sizeof(float);
	out->activation_bytes = activations_bytes(m);
	for (size_t u = 0; u < m->units; u++)
		if (model_unit_here(m, u).count > out->widest)
			out->widest = m->unit[u].count;
	model_destroy(m);
	return 0;
}
