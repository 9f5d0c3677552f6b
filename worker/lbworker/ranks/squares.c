/* SPDX-License-Identifier: MIT */
/* squares.c - a double for each piece of parameters, gathered from all ranks. */
#include "worker/lbworker/ranks/squares.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/slice.h"

_Static_assert((int)PIECE == (int)SQUARES_PIECE, "a device sums up the same pieces");

static struct model_unit part_of(const struct mesh *mesh, const struct model *m, size_t unit,
				 int rank)
{
	const struct model_unit u = model_unit_here(m, unit);

	return mesh_part(mesh, &u, rank);
}

size_t squares_pieces(const struct mesh *mesh, const struct model *m, int rank)
{
	size_t pieces = 0;

	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit part = part_of(mesh, m, u, rank);
		pieces += mesh_pieces(&part);
	}
	return pieces;
}

/* Of a slice of the model without what the first slice has, too. */
static void sum_cut(const struct model *m, size_t at, size_t end, double *sum)
{
	size_t count;

	*sum = 0;
	for (; at < end; at += count) {
		count = end - at;
		if (!slice_is_whole(m, at, &count))
			m->backend->sum_squares(m->device, sum, m->grads + at, count, false, true);
	}
}

static void sum_part_there(const struct model *m, const struct model_unit *part, double *room,
			   double *sum)
{
	if (part->count == 0)
		return;
	m->backend->piece_squares(m->device, room, m->grads + part->first, part->count);
	m->backend->download(m->device, sum, room, mesh_pieces(part) * sizeof(*sum));
}

static void sum_part(const struct model *m, const struct model_unit *part, double *sum)
{
	for (size_t at = 0; at < part->count; at += PIECE, sum++) {
		size_t count = part->count - at < PIECE ? part->count - at : PIECE;
		if (m->options.split.rank > 0)
			sum_cut(m, part->first + at, part->first + at + count, sum);
		else
			m->backend->sum_squares(m->device, sum, m->grads + part->first + at, count,
						false, false);
	}
}

/* The sums of all pieces of the model, in order, as far as they are here. sums[rank]: that
 * rank's, unit by unit; within a unit parts lie in another order than ranks. */
static void put_in_order(const struct mesh *mesh, const struct model *m, double *const *sums,
			 double *all)
{
	size_t *at = xcalloc((size_t)mesh->size, sizeof(*at));

	for (size_t u = 0; u < m->units; all += mesh_pieces(&m->unit[u++])) {
		double *piece = all;
		for (int i = 0; i < mesh->size; i++) {
			int rank = i % mesh->replicate * mesh->shard + i / mesh->replicate;
			const struct model_unit part = part_of(mesh, m, u, rank);
			for (size_t k = 0; k < mesh_pieces(&part); k++)
				*piece++ = sums[rank][at[rank]++];
		}
	}
	free(at);
}

/* Of a stage's matrices, which lie side by side: their pieces among all. */
static struct model_unit pieces_of_stage(const struct model *m, int stage)
{
	struct model_unit range = { 0, 0 };

	for (size_t u = 0; u + 1 < m->units; u++) {
		size_t pieces = mesh_pieces(&m->unit[u]);
		if (model_stage_of(m, u) < stage)
			range.first += pieces;
		else if (model_stage_of(m, u) == stage)
			range.count += pieces;
	}
	return range;
}

/* Each stage has the pieces of its own. */
static int share_stages(struct ranks *pipe, const struct model *m, double *all, struct err *err)
{
	size_t size = (size_t)pipe->size;
	struct comm_part *send = xcalloc(2 * size, sizeof(*send)), *receive = send + size;
	const struct model_unit own = pieces_of_stage(m, pipe->rank);

	for (int r = 0; r < pipe->size; r++) {
		const struct model_unit theirs = pieces_of_stage(m, r);
		if (r == pipe->rank)
			continue;
		send[r] = (struct comm_part){ all + own.first, own.count * sizeof(*all) };
		receive[r] = (struct comm_part){ all + theirs.first, theirs.count * sizeof(*all) };
	}
	int rc = pipe->size > 1 ? ranks_exchange(pipe, send, receive, err) : 0;
	free(send);
	return rc;
}

static int add_up(struct ranks *pipe, const struct mesh *mesh, const struct model *m,
		  double *const *sums, double *squares, struct err *err)
{
	size_t pieces = 0;

	for (size_t u = 0; u < m->units; u++)
		pieces += mesh_pieces(&m->unit[u]);
	double *all = xcalloc(pieces + 1, sizeof(*all));
	put_in_order(mesh, m, sums, all);
	int rc = share_stages(pipe, m, all, err);
	*squares = 0;
	for (size_t i = 0; i < pieces; i++)
		*squares += all[i];
	free(all);
	return rc;
}

int squares_sum(struct ranks *ranks, struct ranks *pipe, const struct mesh *mesh,
		const struct model *m, double *room, double *squares, struct err *err)
{
	size_t size = (size_t)mesh->size;
	double **sums = xcalloc(size, sizeof(*sums));
	struct comm_part *send = xcalloc(size, sizeof(*send));
	struct comm_part *receive = xcalloc(size, sizeof(*receive));
	size_t own = squares_pieces(mesh, m, ranks->rank), at = 0;

	for (int r = 0; r < mesh->size; r++) {
		size_t pieces = squares_pieces(mesh, m, r);
		sums[r] = xcalloc(pieces + 1, sizeof(**sums));
		receive[r] = (struct comm_part){ sums[r], pieces * sizeof(**sums) };
	}
	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit part = part_of(mesh, m, u, ranks->rank);
		if (m->backend->piece_squares)
			sum_part_there(m, &part, room, sums[ranks->rank] + at);
		else
			sum_part(m, &part, sums[ranks->rank] + at);
		at += mesh_pieces(&part);
	}
	for (int r = 0; r < mesh->size; r++)
		send[r] = (struct comm_part){ sums[ranks->rank], own * sizeof(**sums) };
	int rc = ranks_exchange(ranks, send, receive, err);
	if (rc == 0)
		rc = add_up(pipe, mesh, m, sums, squares, err);
	for (int r = 0; r < mesh->size; r++)
		free(sums[r]);
	free(receive);
	free(send);
	free(sums);
	return rc;
}
