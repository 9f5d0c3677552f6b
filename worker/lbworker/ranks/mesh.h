/* SPDX-License-Identifier: MIT */
/* mesh.h - which part of the model each rank holds, and sums up. Pure.
 *
 * Ranks are numbered row by row in a mesh of `replicate` rows of `shard` ranks: a row holds the
 * model once, a column holds the same part of it. The matrices of a layer are a unit (model.h), cut
 * into as many parts as there are ranks, in pieces of PIECE parameters. A rank sums up the gradient
 * of its own part; what it holds is its column's shard: the parts of the whole column, which lie
 * side by side. */
#ifndef LBWORKER_MESH_H
#define LBWORKER_MESH_H

#include <stddef.h>

#include "worker/lbworker/model/model.h"

enum { PIECE = 16384 };

/* What a rank keeps of its shard only: nothing, moments, gradients too, weights too. Rajbhandari et
 * al. 2020 (ZeRO). */
enum zero_stage { ZERO_NONE, ZERO_MOMENTS, ZERO_GRADIENTS, ZERO_WEIGHTS };

struct mesh {
	int rank, size, replicate, shard;
	enum zero_stage stage;
	int context; /* neighbours that share sequences; at least 1 */
};

static inline int mesh_column(const struct mesh *m, int rank)
{
	return rank % m->shard;
}

static inline int mesh_row(const struct mesh *m, int rank)
{
	return rank / m->shard;
}

static inline size_t mesh_pieces(const struct model_unit *u)
{
	return (u->count + PIECE - 1) / PIECE;
}

/* Parts [from, to) of a unit cut into `of`. */
static inline struct model_unit mesh_cut(const struct model_unit *u, int from, int to, int of)
{
	size_t pieces = mesh_pieces(u);
	size_t begin = pieces * (size_t)from / (size_t)of * PIECE;
	size_t end = pieces * (size_t)to / (size_t)of * PIECE;

	begin = begin < u->count ? begin : u->count;
	end = end < u->count ? end : u->count;
	return (struct model_unit){ u->first + begin, end - begin };
}

/* What `rank` sums up of a unit. */
static inline struct model_unit mesh_part(const struct mesh *m, const struct model_unit *u,
					  int rank)
{
	int at = mesh_column(m, rank) * m->replicate + mesh_row(m, rank);

	return mesh_cut(u, at, at + 1, m->size);
}

/* What `rank` holds of it, and updates. */
static inline struct model_unit mesh_shard(const struct mesh *m, const struct model_unit *u,
					   int rank)
{
	int at = mesh_column(m, rank) * m->replicate;

	return mesh_cut(u, at, at + m->replicate, m->size);
}

/* Leaves of so many micro-batches: each is made by the ranks that share its sequences. */
static inline int64_t mesh_leaves(const struct mesh *m, int64_t count)
{
	return count * m->context;
}

/* The micro-batch that is ours when leaves from `first` on are shared out; behind the last of
 * `count` there is nothing left to do: that one again, and it will not be counted. */
static inline int64_t mesh_batch(const struct mesh *m, int64_t first, int64_t count)
{
	int64_t batch = (first + m->rank) / m->context;

	return batch < count ? batch : count - 1;
}

#endif
