/* SPDX-License-Identifier: MIT */
/* first_weights.c - how weights start: matrices at random, norms at 1, all else at 0. */
#include <math.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/base/rng.h"
#include "worker/lbworker/model/layer.h"
#include "worker/lbworker/model/slice.h"

static bool is_residual(enum param param)
{
	return param == PARAM_OUT || param == PARAM_DOWN || param == PARAM_EXPERT_DOWN;
}

static bool starts_at_one(enum param param)
{
	return param == PARAM_NORM1 || param == PARAM_NORM2 || param == PARAM_FINAL_NORM ||
	       (param >= PARAM_QUERY_NORM && param <= PARAM_POST2);
}

/* Each matrix has random numbers of its own; pieces of one matrix share them. */
static void draw(struct model *m, float *to, size_t count, struct rng *rng, double std)
{
	rng->tensor++;
	m->backend->normal(
		m->device, to, count,
		&(struct normal){ .key = rng_key(rng), .tensor = rng->tensor, .std = std });
}

/* The whole is drawn, so that each element is the one it has there, and our slice kept. */
static void init_slice(struct model *m, size_t l, enum param param, size_t count, struct rng *rng,
		       double std)
{
	const size_t whole = m->whole->layer[l].at[param];
	float *all = xmalloc(count * sizeof(float)); /* what computes here is the host */

	draw(m, all, count, rng, std);
	for (size_t i = 0; i < m->tensors; i++) {
		const size_t at = m->whole->tensor[i].offset;
		struct slice_walk walk = slice_begin(m, i);
		struct slice_run run;
		while (at >= whole && at < whole + count && slice_next(&walk, &run))
			m->backend->copy(m->device, m->weights + m->tensor[i].offset + run.local,
					 all + (at - whole) + run.whole, run.count * sizeof(float));
	}
	free(all);
}

/* Of a layer's matrices, or with l = layers of the tables and the head. */
static bool is_here(const struct model *m, size_t l, enum param param)
{
	size_t unit = l < m->shape.layers ? 1 + l : param == PARAM_HEAD ? m->units - 2 : 0;

	return model_unit_here(m, unit).count > 0;
}

static void init_matrix(struct model *m, size_t l, enum param param, size_t count, struct rng *rng,
			double std)
{
	if (!is_here(m, l, param))
		rng->tensor++; /* as draw() does */
	else if (m->whole)
		init_slice(m, l, param, count, rng, std);
	else
		draw(m, m->weights + m->layer[l].at[param], count, rng, std);
}

static void init_table(struct model *m, const struct family_tensor *table, size_t l,
		       struct rng *rng, double std)
{
	double residual_std = m->shape.umup.enable ? std
						   : std / sqrt(2.0 * (double)m->shape.layers);
	const struct family_tensor *row = table;

	while (model_has_row(m, row)) {
		const struct family_tensor *first = row;
		float *to = m->weights + m->layer[l].at[first->param];
		bool matrix = first->columns != EXTENT_NONE;
		const struct model_shape *s = matrix ? &model_whole(m)->shape : &m->shape;
		size_t count = 0;
		for (; model_has_row(m, row) && row->param == first->param; row++)
			count += model_copies(m, row) * slice_extent(s, row->rows) *
				 slice_extent(s, row->columns);
		if (matrix)
			init_matrix(m, l, first->param, count, rng,
				    is_residual(first->param) ? residual_std : std);
		else
			model_fill(m, to, count,
				   starts_at_one(first->param) && !m->family->norms_at_zero ? 1.0f
											    : 0.0f);
	}
}

void model_init_weights(struct model *m, uint64_t seed, double std)
{
	struct rng rng = { .seed = seed, .stream = RNG_INIT };
	size_t layers = m->shape.layers;

	if (m->shape.umup.enable)
		std = 1;
	init_table(m, m->family->first, layers, &rng, std);
	model_release(m, 0);
	for (size_t l = 0; l < layers; l++) {
		init_table(m, model_layer_table(m, l), l, &rng, std);
		model_release(m, 1 + l);
	}
	init_table(m, m->family->last, layers, &rng, std);
	model_release(m, 1 + layers);
}
