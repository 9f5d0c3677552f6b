/* SPDX-License-Identifier: MIT */
/* sharded_exchange.c - who holds what of a unit, and how it goes to the others. */
#include "worker/lbworker/ranks/sharded_state.h"

struct model_unit sharded_unit(const struct sharded *s, size_t unit)
{
	return model_unit_here(s->model, unit);
}

struct model_unit sharded_own(const struct sharded *s, size_t unit)
{
	const struct model_unit u = sharded_unit(s, unit);

	return mesh_shard(&s->options.mesh, &u, s->ranks->rank);
}

const struct mesh *sharded_mesh(const struct sharded *s)
{
	return &s->options.mesh;
}

bool sharded_is_in_our_row(const struct sharded *s, int rank)
{
	return mesh_row(&s->options.mesh, rank) == mesh_row(&s->options.mesh, s->ranks->rank);
}

uint64_t sharded_begin(struct sharded *s)
{
	return s->failure.code == ERR_NONE
		       ? arrays_begin(s->ranks, s->send, s->receive, &s->failure)
		       : 0;
}

void sharded_wait(struct sharded *s, uint64_t ticket)
{
	if (s->failure.code == ERR_NONE)
		(void)arrays_wait(s->ranks, ticket, &s->failure);
}

struct comm_part sharded_wanted(const struct sharded *s, struct model_unit range)
{
	const struct backend *be = s->model->backend;
	float *weights = s->model->weights + range.first;
	size_t each;

	if (!be->weights_wanted || range.count == 0)
		return sharded_bytes(s->model->weights, range);
	void *at = be->weights_wanted(s->model->device, weights, &each);
	return (struct comm_part){ at, range.count * each };
}
