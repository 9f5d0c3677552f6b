/* SPDX-License-Identifier: MIT */
/* sharded_weights.c - what happens to units of weights round the layers of a pass: each is gathered while the
 * one before it is computed with. */
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

static bool is_in_our_row(const struct sharded *s, int rank)
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

/* Weights as products read them. */
static struct comm_part wanted_of(const struct sharded *s, struct model_unit range)
{
	const struct backend *be = s->model->backend;
	float *weights = s->model->weights + range.first;
	size_t each;

	if (!be->weights_wanted || range.count == 0)
		return sharded_bytes(s->model->weights, range);
	void *at = be->weights_wanted(s->model->device, weights, &each);
	return (struct comm_part){ at, range.count * each };
}

uint64_t sharded_gather(struct sharded *s, float *array, size_t unit)
{
	bool is_weights = array == s->model->weights;
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = sharded_unit(s, unit), own = sharded_own(s, unit);

	for (int r = 0; r < mesh->size; r++) {
		bool is_peer = is_in_our_row(s, r) && r != s->ranks->rank;
		const struct comm_part nothing = { NULL, 0 };
		const struct model_unit theirs = mesh_shard(mesh, &u, r);
		s->send[r] = !is_peer     ? nothing
			     : is_weights ? wanted_of(s, own)
					  : sharded_bytes(array, own);
		s->receive[r] = !is_peer     ? nothing
				: is_weights ? wanted_of(s, theirs)
					     : sharded_bytes(array, theirs);
	}
	return sharded_begin(s);
}

void sharded_soon(void *arg, size_t unit)
{
	struct sharded *s = arg;

	if (s->whole[unit] || s->comes[unit])
		return;
	s->ticket[unit] = sharded_gather(s, s->model->weights, unit);
	s->comes[unit] = true;
}

void sharded_need(void *arg, size_t unit)
{
	struct sharded *s = arg;
	const struct model *m = s->model;
	const struct model_unit u = sharded_unit(s, unit);

	if (s->whole[unit])
		return;
	sharded_soon(s, unit);
	sharded_wait(s, s->ticket[unit]);
	if (m->backend->weights_came && u.count > 0)
		m->backend->weights_came(m->device, m->weights + u.first, u.count);
	s->comes[unit] = false;
	s->whole[unit] = true;
	sharded_note_sent(s);
}

void sharded_discard_others(const struct sharded *s, float *array, size_t unit)
{
	const struct backend *be = s->model->backend;
	const struct model_unit u = s->model->unit[unit], own = sharded_own(s, unit);
	size_t behind = own.first + own.count;

	be->discard(s->model->device, array + u.first, (own.first - u.first) * sizeof(float));
	be->discard(s->model->device, array + behind, (u.first + u.count - behind) * sizeof(float));
}

/* Vectors are small, and read all over the place: they stay. */
void sharded_release(void *arg, size_t unit)
{
	struct sharded *s = arg;

	bool is_kept = s->options.mesh.stage < ZERO_WEIGHTS && sharded_unit(s, unit).count > 0;

	if (is_kept || unit + 1 == s->model->units)
		return;
	sharded_discard_others(s, s->model->weights, unit);
	s->whole[unit] = false;
}

void sharded_trim(struct sharded *s)
{
	for (size_t u = 0; u < s->model->units; u++) {
		s->whole[u] = true;
		sharded_release(s, u);
	}
}

void sharded_updated(struct sharded *s)
{
	for (size_t u = 0; u < s->model->units; u++)
		s->whole[u] = s->options.mesh.shard == 1;
}

void sharded_ahead(struct sharded *s, size_t unit)
{
	bool is_first = unit <= 1; /* the tables, the first layer */
	bool stays = s->options.mesh.stage < ZERO_WEIGHTS || unit + 1 == s->model->units;

	if (is_first || stays)
		sharded_soon(s, unit);
}

void sharded_note_sent(struct sharded *s)
{
	if (s->pass)
		s->pass->bytes = s->world->sent_bytes - s->sent_before;
}
