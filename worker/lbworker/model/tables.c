/* SPDX-License-Identifier: MIT */
/* tables.c - what a pass looks up: embeddings of tokens, learned positions, and their gradients. */
#include "worker/lbworker/model/tables.h"

#include <math.h>

#include "worker/lbworker/model/activations.h"
#include "worker/lbworker/model/context.h"
#include "worker/lbworker/model/split.h"

/* Learned positions of rows that begin anywhere: run by run. */
static void add_positions(const struct model *m, void *x, size_t first, size_t rows)
{
	const float *table = m->weights + model_outer(m, PARAM_POSITIONS);
	size_t dim = m->shape.dim, run = context_run(m);

	if (!context_is_shared(m)) {
		m->backend->positions_forward(m->device, x, table + first * dim, rows,
					      rows < m->seq ? rows : m->seq, dim);
		return;
	}
	for (size_t row = 0; row < rows; row += run)
		m->backend->positions_forward(m->device, model_row(m, x, row, dim),
					      table + context_position(m, row % m->seq) * dim, run,
					      run, dim);
}

static float embedding_factor(const struct model_shape *s)
{
	return (float)sqrt((double)s->dim);
}

static void embed(const struct model *m, void *to, size_t rows)
{
	const float *table = m->weights + model_outer(m, PARAM_EMBEDDING);
	const struct vocab_slice slice = slice_vocab(m);
	const int32_t *tokens = m->activations->tokens;

	if (m->whole)
		m->backend->embed_slice_forward(m->device, to, table, tokens, rows, m->shape.dim,
						&slice);
	else
		m->backend->embed_forward(m->device, to, table, tokens, rows, m->shape.dim);
}

void tables_forward(const struct model *m, void *x, size_t first, size_t rows)
{
	const struct model_shape *s = &m->shape;

	embed(m, x, rows);
	if (m->family->scaled_embedding)
		m->backend->scaled_sum(m->device, x, x, embedding_factor(s), NULL, rows * s->dim);
	if (m->family->learned_positions && m->options.split.rank == 0)
		add_positions(m, x, first, rows);
}

static void positions_backward(const struct model *m, const void *dx, bool accumulate)
{
	float *table = model_grad(m, model_outer(m, PARAM_POSITIONS));
	size_t rows = m->batch * m->seq, dim = m->shape.dim, run = context_run(m);
	const size_t row_bytes = dim * compute_bytes(m->options.compute);

	/* those that no row stands at, too: what is reserved for gradients holds anything */
	if (!accumulate)
		m->backend->zero(m->device, table, m->shape.positions * dim * sizeof(float));
	if (!context_is_shared(m)) {
		m->backend->positions_backward(m->device, table, dx, rows, m->seq, dim, true);
		return;
	}
	for (size_t row = 0; row < rows; row += run)
		m->backend->positions_backward(m->device,
					       table + context_position(m, row % m->seq) * dim,
					       (const char *)dx + row * row_bytes, run, run, dim,
					       true);
}

void tables_backward(const struct model *m, bool accumulate)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	float *table = model_grad(m, model_outer(m, PARAM_EMBEDDING));
	size_t rows = m->batch * m->seq;
	const struct vocab_slice slice = slice_vocab(m);
	const void *dx = split_gather(m, a->shared.dgathered, a->shared.dx, rows, s->dim);

	if (m->family->scaled_embedding)
		m->backend->scaled_sum(m->device, a->shared.dx, a->shared.dx, embedding_factor(s),
				       NULL, rows * s->dim);
	/* A tied head has already put its part there. */
	if (!s->tied && !accumulate)
		m->backend->zero(m->device, table, s->vocab * s->dim * sizeof(float));
	if (m->whole)
		m->backend->embed_slice_backward(m->device, table, dx, a->tokens, rows, s->dim,
						 &slice);
	else
		m->backend->embed_backward(m->device, table, dx, a->tokens, rows, s->dim);
	if (m->family->learned_positions)
		positions_backward(m, dx, accumulate);
}
