/* SPDX-License-Identifier: MIT */
/* sharded_weights.c - what happens to units of weights round the layers of a pass: each is gathered
 * while the one before it is computed with. */
#include "worker/lbworker/ranks/sharded_state.h"

uint64_t sharded_gather(struct sharded *s, float *array, size_t unit)
{
	bool is_weights = array == s->model->weights;
	bool is_codes = is_weights && sharded_goes_as_codes(s, unit);
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = sharded_unit(s, unit), own = sharded_own(s, unit);

	if (is_codes)
		sharded_codes_refresh(s);
	for (int r = 0; r < mesh->size; r++) {
		bool is_peer = sharded_is_in_our_row(s, r) && r != s->ranks->rank;
		const struct comm_part nothing = { NULL, 0 };
		const struct model_unit theirs = mesh_shard(mesh, &u, r);
		s->send[r] = !is_peer      ? nothing
			     : is_codes    ? sharded_codes_of(s, unit)
			     : !is_weights ? sharded_bytes(array, own)
					   : sharded_wanted(s, own);
		s->receive[r] = !is_peer      ? nothing
				: is_codes    ? sharded_codes_come(s, theirs)
				: !is_weights ? sharded_bytes(array, theirs)
					      : sharded_wanted(s, theirs);
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
	if (sharded_goes_as_codes(s, unit))
		sharded_codes_came(s, unit);
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
	sharded_codes_outdated(s);
}

static void begin_ahead(struct sharded *s, size_t unit)
{
	bool is_first = unit <= 1; /* the tables, the first layer */
	bool stays = s->options.mesh.stage < ZERO_WEIGHTS || unit + 1 == s->model->units;

	if (is_first || stays)
		sharded_soon(s, unit);
}

/* Codes ask for all of the new weights: their units begin behind the last. */
void sharded_ahead(struct sharded *s, size_t unit)
{
	if (!sharded_goes_as_codes(s, unit))
		begin_ahead(s, unit);
	for (size_t u = 0; unit + 1 == s->model->units && u < unit; u++)
		if (sharded_goes_as_codes(s, u))
			begin_ahead(s, u);
}

void sharded_note_sent(struct sharded *s)
{
	if (s->pass)
		s->pass->bytes = s->world->sent_bytes - s->sent_before;
}
