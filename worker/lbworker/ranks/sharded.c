/* SPDX-License-Identifier: MIT */
/* sharded.c - a pass is watched: what is called round its layers, also where it is recorded. */
#include "worker/lbworker/ranks/sharded.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fnv.h"
#include "common/base/mem.h"
#include "worker/lbworker/ranks/arrays.h"
#include "worker/lbworker/ranks/reduction.h"
#include "worker/lbworker/ranks/sharded_state.h"
#include "worker/lbworker/ranks/squares.h"

/* --- recorded passes -------------------------------------------------------------------------- */

/* What need() and done() will queue: which units are here, which leaves come in, and where they
 * carry to. */
static uint64_t program(void *arg)
{
	struct sharded *s = arg;
	int64_t here = s->leaves - s->first;
	const int64_t parts[] = { s->reduces, s->first % s->options.width,
				  s->first >= s->options.width,
				  here < s->ranks->size ? here : s->ranks->size };
	uint64_t digest = FNV_START;

	/* A recorded program waits for nothing that was begun outside of it. */
	if (s->model->backend->record)
		sharded_codes_refresh(s);
	for (size_t u = 0; u < s->model->units && s->model->backend->record; u++)
		if (s->comes[u])
			sharded_need(s, u);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		digest = fnv_add(digest, (uint64_t)parts[i]);
	for (size_t u = 0; u < s->model->units; u++)
		digest = fnv_add(digest, s->whole[u]);
	s->pass = &s->passes[0];
	for (size_t i = 0; i < PASSES && s->pass->program != digest; i++)
		s->pass = &s->passes[i];
	if (s->pass->program != digest)
		s->pass = &s->passes[s->next_pass++ % PASSES];
	s->pass->program = digest;
	s->sent_before = s->world->sent_bytes;
	return digest;
}

static void replayed(void *arg)
{
	struct sharded *s = arg;

	for (size_t u = 0; u < s->model->units; u++)
		s->whole[u] = s->options.mesh.stage < ZERO_WEIGHTS || u + 1 == s->model->units;
	s->world->sent_bytes += s->pass->bytes;
}

/* --- life ------------------------------------------------------------------------------------ */

/* Where our parts lie one behind the other; the longest unit decides what is received. */
static size_t lay_out(struct sharded *s, size_t *most)
{
	size_t count = 0;

	*most = 1;
	for (size_t u = 0; u < s->model->units; u++) {
		size_t part = sharded_part(s, u).count;
		s->own_at[u] = count;
		count += part;
		*most = part > *most ? part : *most;
	}
	return count;
}

/* Of so many floats each; false: no memory. */
static bool reserve_received(struct sharded *s, size_t count)
{
	const struct model *m = s->model;
	bool is_there = true;

	for (size_t i = 0; i < UNDER_WAY; i++) {
		float *place = m->backend->reserve(m->device, count * sizeof(float));
		s->under_way[i].received = place;
		is_there = is_there && place;
	}
	return is_there;
}

static struct ranks alone = { .size = 1, .beside = 1, .sharing = 1 };

static void ask_peers(void *arg, const struct comm_part *send, const struct comm_part *receive)
{
	struct sharded *s = arg;

	if (s->failure.code == ERR_NONE)
		(void)arrays_exchange(s->tensor, send, receive, &s->failure);
}

void sharded_split(struct sharded *s, struct ranks *world, struct ranks *tensor)
{
	s->world = world;
	s->tensor = tensor;
	s->model->peers = (struct model_peers){ ask_peers, s };
}

static void ask_sharers(void *arg, const struct comm_part *send, const struct comm_part *receive)
{
	struct sharded *s = arg;

	if (s->failure.code == ERR_NONE)
		(void)arrays_exchange(s->sharers, send, receive, &s->failure);
}

void sharded_context(struct sharded *s, struct ranks *sharers)
{
	s->sharers = sharers;
	s->model->sharers = (struct model_peers){ ask_sharers, s };
}

void sharded_stages(struct sharded *s, struct ranks *pipe, struct ranks *plane)
{
	size_t size = (size_t)plane->size;

	s->pipe = pipe;
	s->plane = plane;
	s->send = xrealloc(s->send, size * sizeof(*s->send));
	s->receive = xrealloc(s->receive, size * sizeof(*s->receive));
}

int sharded_stream(struct sharded *s, const struct comm_part *send, const struct comm_part *receive)
{
	if (s->failure.code == ERR_NONE)
		(void)arrays_exchange(s->pipe, send, receive, &s->failure);
	return s->failure.code == ERR_NONE ? 0 : -1;
}

struct sharded *sharded_create(struct ranks *ranks, struct model *model,
			       const struct sharded_options *options, struct err *err)
{
	const struct backend *be = model->backend;
	struct sharded *s = xcalloc(1, sizeof(*s));
	size_t most;

	*s = (struct sharded){ .ranks = ranks,
			       .world = ranks,
			       .tensor = &alone,
			       .pipe = &alone,
			       .plane = ranks,
			       .model = model,
			       .options = *options };
	s->whole = xcalloc(model->units, sizeof(*s->whole));
	s->comes = xcalloc(model->units, sizeof(*s->comes));
	s->ticket = xcalloc(model->units, sizeof(*s->ticket));
	s->own_at = xcalloc(model->units, sizeof(*s->own_at));
	s->send = xcalloc((size_t)ranks->size, sizeof(*s->send));
	s->receive = xcalloc((size_t)ranks->size, sizeof(*s->receive));
	size_t count = lay_out(s, &most);
	s->reduction = reduction_create(be, model->device, count, options->width);
	bool has_room = s->reduction && reserve_received(s, (size_t)ranks->size * most);
	size_t pieces = squares_pieces(&options->mesh, model, ranks->rank);
	if (be->piece_squares)
		s->squares = be->alloc(model->device, (pieces + 1) * sizeof(double),
				       "parts of the model");
	if (options->as_codes)
		s->units_as_codes = sharded_codes_make(s);
	if (!has_room || (be->piece_squares && !s->squares) || s->units_as_codes == SIZE_MAX) {
		err_set(err, ERR_IO, "no memory for the sums of gradients (%zu MiB)",
			count * sizeof(float) >> 20);
		sharded_destroy(s);
		return NULL;
	}
	for (size_t u = 0; u < model->units; u++)
		s->whole[u] = true;
	model->watch = (struct model_watch){
		sharded_soon, sharded_need, sharded_release, sharded_done, program, replayed, s
	};
	return s;
}

size_t sharded_units_as_codes(const struct sharded *s)
{
	return s->units_as_codes;
}

void sharded_destroy(struct sharded *s)
{
	if (!s)
		return;
	ranks_drain(s->world); /* a failure may leave some under way, to what is freed now */
	s->model->watch = (struct model_watch){ 0 };
	s->model->peers = s->model->sharers = (struct model_peers){ 0 };
	reduction_destroy(s->reduction);
	for (size_t i = 0; i < UNDER_WAY; i++)
		s->model->backend->free(s->model->device, s->under_way[i].received);
	s->model->backend->free(s->model->device, s->squares);
	sharded_codes_free(s);
	free(s->whole);
	free(s->comes);
	free(s->ticket);
	free(s->own_at);
	free(s->send);
	free(s->receive);
	free(s);
}
