/* SPDX-License-Identifier: MIT */
/* squares.c - a double for each piece of parameters, gathered from all ranks. */
#include "worker/lbworker/ranks/squares.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/slice.h"

static size_t pieces_of(const struct model_unit *part)
{
	return (part->count + PIECE - 1) / PIECE;
}

static size_t pieces_of_rank(const struct mesh *mesh, const struct model *m, int rank)
{
	size_t pieces = 0;

	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit part = mesh_part(mesh, &m->unit[u], rank);
		pieces += pieces_of(&part);
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

/* sums[rank]: that rank's, unit by unit. Within a unit parts lie in another order than ranks. */
static double fold(const struct mesh *mesh, const struct model *m, double *const *sums)
{
	size_t *at = xcalloc((size_t)mesh->size, sizeof(*at));
	double squares = 0;

	for (size_t u = 0; u < m->units; u++)
		for (int i = 0; i < mesh->size; i++) {
			int rank = i % mesh->replicate * mesh->shard + i / mesh->replicate;
			const struct model_unit part = mesh_part(mesh, &m->unit[u], rank);
			for (size_t k = 0; k < pieces_of(&part); k++)
				squares += sums[rank][at[rank]++];
		}
	free(at);
	return squares;
}

int squares_sum(struct ranks *ranks, const struct mesh *mesh, const struct model *m,
		double *squares, struct err *err)
{
	size_t size = (size_t)mesh->size;
	double **sums = xcalloc(size, sizeof(*sums));
	struct comm_part *send = xcalloc(size, sizeof(*send));
	struct comm_part *receive = xcalloc(size, sizeof(*receive));
	size_t own = pieces_of_rank(mesh, m, ranks->rank), at = 0;

	for (int r = 0; r < mesh->size; r++) {
		size_t pieces = pieces_of_rank(mesh, m, r);
		sums[r] = xcalloc(pieces + 1, sizeof(**sums));
		receive[r] = (struct comm_part){ sums[r], pieces * sizeof(**sums) };
	}
	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit part = mesh_part(mesh, &m->unit[u], ranks->rank);
		sum_part(m, &part, sums[ranks->rank] + at);
		at += pieces_of(&part);
	}
	for (int r = 0; r < mesh->size; r++)
		send[r] = (struct comm_part){ sums[ranks->rank], own * sizeof(**sums) };
	int rc = ranks_exchange(ranks, send, receive, err);
	*squares = fold(mesh, m, sums);
	for (int r = 0; r < mesh->size; r++)
		free(sums[r]);
	free(receive);
	free(send);
	free(sums);
	return rc;
}
