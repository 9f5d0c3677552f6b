/* SPDX-License-Identifier: MIT */
/* sharded.c - what happens to units of weights and gradients round the layers of a pass. */
#include "worker/lbworker/ranks/sharded.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fnv.h"
#include "common/base/mem.h"
#include "worker/lbworker/ranks/arrays.h"
#include "worker/lbworker/ranks/reduction.h"
#include "worker/lbworker/ranks/sharded_state.h"
#include "worker/lbworker/ranks/squares.h"

/* --- recorded passes --------------------------------------------------------------------------- */

/* What need() and done() will queue: which units are here, which leaves come in, and where they carry to. */
static uint64_t program(void *arg)
{
	struct sharded *s = arg;
	int64_t here = s->leaves - s->first;
	const int64_t parts[] = { s->reduces, s->first % s->options.width,
				  s->first >= s->options.width,
				  here < s->ranks->size ? here : s->ranks->size };
	uint64_t digest = FNV_START;

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

/* What a pass has sent by now is what it sends when it is replayed. */
static void note_sent(struct sharded *s)
{
	if (s->pass)
		s->pass->bytes = s->world->sent_bytes - s->sent_before;
}

static void replayed(void *arg)
{
	struct sharded *s = arg;

	for (size_t u = 0; u < s->model->units; u++)
		s->whole[u] = s->options.mesh.stage < ZERO_WEIGHTS || u + 1 == s->model->units;
	s->world->sent_bytes += s->pass->bytes;
}

/* --- weights ----------------------------------------------------------------------------------- */

static struct model_unit unit_of(const struct sharded *s, size_t unit)
{
	return model_unit_here(s->model, unit);
}

/* What of a unit's gradient this rank adds up. */
static struct model_unit part_of(const struct sharded *s, size_t unit)
{
	const struct model_unit u = unit_of(s, unit);

	return mesh_part(&s->options.mesh, &u, s->ranks->rank);
}

struct model_unit sharded_own(const struct sharded *s, size_t unit)
{
	const struct model_unit u = unit_of(s, unit);

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

static void exchange(struct sharded *s)
{
	if (s->failure.code == ERR_NONE)
		(void)arrays_exchange(s->ranks, s->send, s->receive, &s->failure);
}

static struct comm_part bytes_of(float *array, struct model_unit range)
{
	return (struct comm_part){ array + range.first, range.count * sizeof(float) };
}

/* Weights as products read them. */
static struct comm_part wanted_of(const struct sharded *s, struct model_unit range)
{
	const struct backend *be = s->model->backend;
	float *weights = s->model->weights + range.first;
	size_t each;

	if (!be->weights_wanted || range.count == 0)
		return bytes_of(s->model->weights, range);
	void *at = be->weights_wanted(s->model->device, weights, &each);
	return (struct comm_part){ at, range.count * each };
}

/* Each row has the array once: its ranks give each other their shards of the unit. */
static void gather(struct sharded *s, float *array, size_t unit)
{
	bool is_weights = array == s->model->weights;
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = unit_of(s, unit), own = sharded_own(s, unit);

	for (int r = 0; r < mesh->size; r++) {
		bool is_peer = is_in_our_row(s, r) && r != s->ranks->rank;
		const struct comm_part nothing = { NULL, 0 };
		const struct model_unit theirs = mesh_shard(mesh, &u, r);
		s->send[r] = !is_peer     ? nothing
			     : is_weights ? wanted_of(s, own)
					  : bytes_of(array, own);
		s->receive[r] = !is_peer     ? nothing
				: is_weights ? wanted_of(s, theirs)
					     : bytes_of(array, theirs);
	}
	exchange(s);
	if (is_weights && s->model->backend->weights_came && u.count > 0)
		s->model->backend->weights_came(s->model->device, array + u.first, u.count);
}

static void need(void *arg, size_t unit)
{
	struct sharded *s = arg;

	if (s->whole[unit])
		return;
	gather(s, s->model->weights, unit);
	s->whole[unit] = true;
	note_sent(s);
}

/* All of the array's unit but our shard. */
static void discard_others(const struct sharded *s, float *array, size_t unit)
{
	const struct backend *be = s->model->backend;
	const struct model_unit u = s->model->unit[unit], own = sharded_own(s, unit);
	size_t behind = own.first + own.count;

	be->discard(s->model->device, array + u.first, (own.first - u.first) * sizeof(float));
	be->discard(s->model->device, array + behind, (u.first + u.count - behind) * sizeof(float));
}

/* Vectors are small, and read all over the place: they stay. */
static void release(void *arg, size_t unit)
{
	struct sharded *s = arg;

	bool is_kept = s->options.mesh.stage < ZERO_WEIGHTS && unit_of(s, unit).count > 0;

	if (is_kept || unit + 1 == s->model->units)
		return;
	discard_others(s, s->model->weights, unit);
	s->whole[unit] = false;
}

void sharded_trim(struct sharded *s)
{
	for (size_t u = 0; u < s->model->units; u++) {
		s->whole[u] = true;
		release(s, u);
	}
}

void sharded_updated(struct sharded *s)
{
	for (size_t u = 0; u < s->model->units; u++)
		s->whole[u] = s->options.mesh.shard == 1;
}

/* --- gradients --------------------------------------------------------------------------------- */

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
static void share_out(struct sharded *s, const struct model_unit *u)
{
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit own = mesh_part(mesh, u, s->ranks->rank);
	const struct comm_part nothing = { NULL, 0 };

	for (int r = 0; r < mesh->size; r++) {
		float *place = s->received + (size_t)r * own.count;
		bool is_other = r != s->ranks->rank;
		s->send[r] = is_other && counts(s, s->ranks->rank)
				     ? bytes_of(s->model->grads, mesh_part(mesh, u, r))
				     : nothing;
		s->receive[r] = is_other && counts(s, r)
					? (struct comm_part){ place, own.count * sizeof(float) }
					: nothing;
	}
	exchange(s);
}

/* Everybody gets the sum of his part. */
static void reduce_on_the_way(struct sharded *s, const struct model_unit *u)
{
	for (int r = 0; r < s->ranks->size; r++)
		s->send[r] = bytes_of(s->model->grads, mesh_part(&s->options.mesh, u, r));
	if (s->failure.code == ERR_NONE)
		(void)arrays_reduce(s->ranks, s->send, &s->failure);
}

static void done(void *arg, size_t unit)
{
	struct sharded *s = arg;
	const struct model_unit u = unit_of(s, unit), own = part_of(s, unit);

	if (!s->reduces)
		return;
	if (unit + 1 == s->model->units)
		model_sum_norms(s->model);
	if (s->options.fast && arrays_can_reduce(s->ranks)) {
		reduce_on_the_way(s, &u);
		note_sent(s);
		reduction_push(s->reduction, 0, s->own_at[unit], s->model->grads + own.first,
			       own.count);
		return;
	}
	share_out(s, &u);
	note_sent(s);
	for (int r = 0; r < s->ranks->size && counts(s, r); r++) {
		float *gradient = r == s->ranks->rank ? s->model->grads + own.first
						      : s->received + (size_t)r * own.count;
		reduction_push(s->reduction, s->first + r, s->own_at[unit], gradient, own.count);
	}
	if (s->options.mesh.stage >= ZERO_GRADIENTS)
		s->model->backend->discard(s->model->device, s->model->grads + u.first,
					   u.count * sizeof(float));
}

/* Ranks of a column hold the same shard, and have summed up a part of it each. */
static void complete_shard(struct sharded *s, size_t unit)
{
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = unit_of(s, unit);
	const struct comm_part nothing = { NULL, 0 };
	int me = s->ranks->rank;

	if (mesh->replicate == 1)
		return;
	for (int r = 0; r < mesh->size; r++) {
		bool is_peer = mesh_column(mesh, r) == mesh_column(mesh, me) && r != me;
		s->send[r] = is_peer ? bytes_of(s->model->grads, mesh_part(mesh, &u, me)) : nothing;
		s->receive[r] = is_peer ? bytes_of(s->model->grads, mesh_part(mesh, &u, r))
					: nothing;
	}
	exchange(s);
}

/* --- the end of a step ------------------------------------------------------------------------- */

void sharded_gather_gradients(void *arg, size_t unit)
{
	struct sharded *s = arg;

	if (s->options.mesh.shard > 1)
		gather(s, s->model->grads, unit);
}

void sharded_release_gradients(void *arg, size_t unit)
{
	struct sharded *s = arg;

	if (s->options.mesh.stage >= ZERO_GRADIENTS)
		discard_others(s, s->model->grads, unit);
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
	const struct model_unit part = part_of(s, m->units - 1);
	const struct model_unit own = overlap(part, model_vectors_of(m, s->pipe->rank));
	const struct comm_part nothing = { NULL, 0 };

	for (int r = 0; r < s->pipe->size; r++) {
		bool is_other = r != s->pipe->rank;
		s->send[r] = is_other ? bytes_of(m->grads, own) : nothing;
		s->receive[r] = is_other ? bytes_of(m->grads, overlap(part, model_vectors_of(m, r)))
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
		const struct model_unit part = part_of(s, u);
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

/* --- life ------------------------------------------------------------------------------------ */

/* Where our parts lie one behind the other; the longest unit decides what is received. */
static size_t lay_out(struct sharded *s, size_t *most)
{
	size_t count = 0;

	*most = 1;
	for (size_t u = 0; u < s->model->units; u++) {
		size_t part = part_of(s, u).count;
		s->own_at[u] = count;
		count += part;
		*most = part > *most ? part : *most;
	}
	return count;
}

static struct ranks alone = { .size = 1, .beside = 1 };

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
	s->own_at = xcalloc(model->units, sizeof(*s->own_at));
	s->send = xcalloc((size_t)ranks->size, sizeof(*s->send));
	s->receive = xcalloc((size_t)ranks->size, sizeof(*s->receive));
	size_t count = lay_out(s, &most);
	s->reduction = reduction_create(be, model->device, count, options->width);
	s->received = be->reserve(model->device, (size_t)ranks->size * most * sizeof(float));
	size_t pieces = squares_pieces(&options->mesh, model, ranks->rank);
	if (be->piece_squares)
		s->squares = be->alloc(model->device, (pieces + 1) * sizeof(double),
				       "parts of the model");
	if (!s->reduction || !s->received || (be->piece_squares && !s->squares)) {
		err_set(err, ERR_IO, "no memory for the sums of gradients (%zu MiB)",
			count * sizeof(float) >> 20);
		sharded_destroy(s);
		return NULL;
	}
	for (size_t u = 0; u < model->units; u++)
		s->whole[u] = true;
	model->watch = (struct model_watch){ need, release, done, program, replayed, s };
	return s;
}

void sharded_destroy(struct sharded *s)
{
	if (!s)
		return;
	s->model->watch = (struct model_watch){ 0 };
	s->model->peers = s->model->sharers = (struct model_peers){ 0 };
	reduction_destroy(s->reduction);
	s->model->backend->free(s->model->device, s->received);
	s->model->backend->free(s->model->device, s->squares);
	free(s->whole);
	free(s->own_at);
	free(s->send);
	free(s->receive);
	free(s);
}
