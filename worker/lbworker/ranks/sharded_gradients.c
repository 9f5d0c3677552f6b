/* SPDX-License-Identifier: MIT */
/* sharded_gradients.c - units of gradients go to those who add them up while the pass goes on with
 * the layer before; and the end of a step. */
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/ranks/sharded_state.h"
#include "worker/lbworker/ranks/squares.h"

struct model_unit sharded_part(const struct sharded *s, size_t unit)
{
	const struct model_unit u = sharded_unit(s, unit);

	return mesh_part(&s->options.mesh, &u, s->ranks->rank);
}

/* --- gradients -------------------------------------------------------------------------------- */

void sharded_wave(struct sharded *s, int64_t first, int64_t leaves, bool is_last)
{
	s->reduces = !s->options.fast || is_last;
	s->first = s->options.fast ? 0 : first;
	s->leaves = !s->options.fast ? leaves : arrays_can_reduce(s->ranks) ? 1 : s->ranks->size;
}

/* A micro-batch that was made only so that all ranks do the same is left out. */
static bool counts(const struct sharded *s, int rank)
{
	return s->first + rank < s->leaves;
}

/* Everybody gets all gradients of his part. */
static uint64_t share_out(struct sharded *s, const struct under_way *w)
{
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = sharded_unit(s, w->unit), own = sharded_part(s, w->unit);
	const struct comm_part nothing = { NULL, 0 };

	for (int r = 0; r < mesh->size; r++) {
		float *place = w->received + (size_t)r * own.count;
		bool is_other = r != s->ranks->rank;
		s->send[r] = is_other && counts(s, s->ranks->rank)
				     ? sharded_bytes(s->model->grads, mesh_part(mesh, &u, r))
				     : nothing;
		s->receive[r] = is_other && counts(s, r)
					? (struct comm_part){ place, own.count * sizeof(float) }
					: nothing;
	}
	return sharded_begin(s);
}

static bool is_reduced_on_the_way(const struct sharded *s)
{
	return s->options.fast && arrays_can_reduce(s->ranks);
}

/* Everybody gets the sum of his part. */
static uint64_t reduce_on_the_way(struct sharded *s, size_t unit)
{
	const struct model_unit u = sharded_unit(s, unit);

	for (int r = 0; r < s->ranks->size; r++)
		s->send[r] = sharded_bytes(s->model->grads, mesh_part(&s->options.mesh, &u, r));
	return s->failure.code == ERR_NONE ? arrays_begin_sum(s->ranks, s->send, &s->failure) : 0;
}

static void send_off(struct sharded *s, size_t unit)
{
	struct under_way *w = &s->under_way[s->sent_off++ % UNDER_WAY];

	w->unit = unit;
	w->ticket = is_reduced_on_the_way(s) ? reduce_on_the_way(s, unit) : share_out(s, w);
}

/* The oldest under way: adds it up. */
static void take_in(struct sharded *s)
{
	const struct under_way *w = &s->under_way[s->taken_in++ % UNDER_WAY];
	const struct model *m = s->model;
	const struct model_unit u = sharded_unit(s, w->unit), own = sharded_part(s, w->unit);
	size_t at = s->own_at[w->unit];

	sharded_wait(s, w->ticket);
	if (is_reduced_on_the_way(s)) {
		reduction_push(s->reduction, 0, at, m->grads + own.first, own.count);
		return;
	}
	for (int r = 0; r < s->ranks->size && counts(s, r); r++) {
		float *gradient = r == s->ranks->rank ? m->grads + own.first
						      : w->received + (size_t)r * own.count;
		reduction_push(s->reduction, s->first + r, at, gradient, own.count);
	}
	if (s->options.mesh.stage >= ZERO_GRADIENTS)
		m->backend->discard(m->device, m->grads + u.first, u.count * sizeof(float));
}

/* Behind a pass nothing is under way: the next one writes there, and a recorded program is
 * whole. */
void sharded_done(void *arg, size_t unit)
{
	struct sharded *s = arg;
	bool is_last = unit + 1 == s->model->units;

	if (!s->reduces)
		return;
	if (is_last)
		model_sum_norms(s->model);
	if (s->sent_off - s->taken_in == UNDER_WAY)
		take_in(s);
	send_off(s, unit);
	while ((is_last || s->ranks->size == 1) && s->taken_in != s->sent_off)
		take_in(s);
	sharded_note_sent(s);
}

/* Ranks of a column hold the same shard, and have summed up a part of it each. */
static void complete_shard(struct sharded *s, size_t unit)
{
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = sharded_unit(s, unit);
	const struct comm_part nothing = { NULL, 0 };
	int me = s->ranks->rank;

	if (mesh->replicate == 1)
		return;
	for (int r = 0; r < mesh->size; r++) {
		bool is_peer = mesh_column(mesh, r) == mesh_column(mesh, me) && r != me;
		s->send[r] = is_peer ? sharded_bytes(s->model->grads, mesh_part(mesh, &u, me))
				     : nothing;
		s->receive[r] = is_peer ? sharded_bytes(s->model->grads, mesh_part(mesh, &u, r))
					: nothing;
	}
	sharded_wait(s, sharded_begin(s));
}

/* --- the end of a step ------------------------------------------------------------------------ */

void sharded_gather_gradients(void *arg, size_t unit)
{
	struct sharded *s = arg;

	if (s->options.mesh.shard > 1)
		sharded_wait(s, sharded_gather(s, s->model->grads, unit));
}

void sharded_release_gradients(void *arg, size_t unit)
{
	struct sharded *s = arg;

	if (s->options.mesh.stage >= ZERO_GRADIENTS)
		sharded_discard_others(s, s->model->grads, unit);
}

/* Where two ranges overlap; else nothing. */
static struct model_unit overlap(struct model_unit a, struct model_unit b)
{
	size_t first = a.first > b.first ? a.first : b.first;
	size_t a_end = a.first + a.count, b_end = b.first + b.count;
	size_t end = a_end < b_end ? a_end : b_end;

	return (struct model_unit){ first, end > first ? end - first : 0 };
}

/* Each stage has summed up the gradients of vectors that its own passes use: all get all. */
static void share_vectors(struct sharded *s)
{
	const struct model *m = s->model;
	const struct model_unit part = sharded_part(s, m->units - 1);
	const struct model_unit own = overlap(part, model_vectors_of(m, s->pipe->rank));
	const struct comm_part nothing = { NULL, 0 };

	for (int r = 0; r < s->pipe->size; r++) {
		bool is_other = r != s->pipe->rank;
		s->send[r] = is_other ? sharded_bytes(m->grads, own) : nothing;
		s->receive[r] = is_other ? sharded_bytes(m->grads,
							 overlap(part, model_vectors_of(m, r)))
					 : nothing;
	}
	if (s->pipe->size > 1 && s->failure.code == ERR_NONE)
		(void)arrays_exchange(s->pipe, s->send, s->receive, &s->failure);
}

/* Of all slices; what each has whole was counted by the first only. */
static int add_squares(struct sharded *s, double *squares, struct err *err)
{
	size_t size = (size_t)s->tensor->size;
	double *all = xcalloc(size, sizeof(*all)), sum = 0;
	int rc = ranks_gather(s->tensor, squares, sizeof(*squares), all, err);

	for (size_t r = 0; r < size; r++)
		sum += all[r];
	if (size > 1)
		*squares = sum;
	free(all);
	return rc;
}

int sharded_sum(struct sharded *s, const double *loss, int64_t leaves, const struct rank_note *mine,
		struct rank_note *notes, struct step_sums *sums, struct err *err)
{
	const struct model *m = s->model;

	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit part = sharded_part(s, u);
		reduction_finish(s->reduction, s->leaves, s->own_at[u], m->grads + part.first,
				 part.count);
	}
	share_vectors(s);
	int rc = arrays_check(s->ranks, &s->failure);
	if (rc == 0)
		rc = sharded_tell(s, loss, leaves, mine, notes, &sums->loss, &s->failure);
	if (rc == 0)
		rc = squares_sum(s->ranks, s->pipe, &s->options.mesh, m, s->squares, &sums->squares,
				 &s->failure);
	if (rc == 0)
		rc = add_squares(s, &sums->squares, &s->failure);
	for (size_t u = 0; rc == 0 && u < m->units; u++)
		complete_shard(s, u);
	if (s->failure.code == ERR_NONE)
		return 0;
	return err_set(err, s->failure.code, "%s", s->failure.text);
}
