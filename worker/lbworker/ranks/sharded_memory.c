/* SPDX-License-Identifier: MIT */
/* sharded_memory.c - the memory of weights and gradients, of which passes bring and lose what is
 * others'.
 *
 * A CPU's comes and goes a page at a time. A GPU's is laid out once: what is others' of a unit has
 * the memory that the units have before and behind it in a pass, in turn, as one is used while the
 * next one comes. */
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/families/family.h"
#include "worker/lbworker/ranks/sharded_state.h"

/* A unit of weights is used while the next is gathered; of gradients one is made while others are
 * under way. */
enum { WEIGHTS_IN_TURN = 2, GRADIENTS_IN_TURN = 1 + UNDER_WAY };

/* Used at both ends of a pass, or kept from one to the next, a unit has no turn. */
static bool has_turn(const struct model *m, size_t unit, bool is_gradient)
{
	bool is_tables = unit == 0, is_vectors = unit + 1 == m->units;
	bool keeps_some = is_gradient && m->family->learned_positions;

	return !is_vectors && !(is_tables && (m->shape.tied || keeps_some));
}

/* turns 0: what is others' stays. */
static struct share share_of(const struct model *m, const struct mesh *mesh, size_t u, size_t turns,
			     bool is_gradient)
{
	const struct model_unit all = m->unit[u], here = model_unit_here(m, u);
	const struct model_unit own = mesh_shard(mesh, &here, mesh->rank);
	int rest = turns > 0 && has_turn(m, u, is_gradient) ? (int)(u % turns) : REST_STAYS;

	/* of another stage of a pipeline */
	if (here.count == 0)
		rest = REST_IS_LOST;
	return (struct share){ all.first, all.count, own.first, own.count, rest };
}

static void take_shares(struct model *m, const struct sharded_options *o)
{
	const struct mesh *mesh = &o->mesh;
	size_t weights = mesh->stage >= ZERO_WEIGHTS ? WEIGHTS_IN_TURN : 0;
	/* where passes add to a gradient that nobody has sent off it stays */
	size_t gradients = mesh->stage >= ZERO_GRADIENTS && !o->fast ? GRADIENTS_IN_TURN : 0;
	struct share *of_weights = xcalloc(m->units, sizeof(*of_weights));
	struct share *of_gradients = xcalloc(m->units, sizeof(*of_gradients));

	for (size_t u = 0; u < m->units; u++) {
		of_weights[u] = share_of(m, mesh, u, weights, false);
		of_gradients[u] = share_of(m, mesh, u, gradients, true);
	}
	m->weights = m->backend->alloc_weights_shares(m->device, m->parameters, m->decayed,
						      of_weights, m->units);
	m->grads = m->backend->reserve_shares(m->device, m->parameters, sizeof(float), of_gradients,
					      m->units);
	free(of_weights);
	free(of_gradients);
}

void sharded_take(void *options, struct model *m)
{
	const struct backend *be = m->backend;

	if (be->alloc_weights_shares) {
		take_shares(m, options);
		return;
	}
	m->weights = be->reserve(m->device, m->parameters * sizeof(float));
	m->grads = be->reserve(m->device, m->parameters * sizeof(float));
}
