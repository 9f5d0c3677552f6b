/* SPDX-License-Identifier: MIT */
/* sharded_collect.c - arrays of which each rank holds a part, brought together for a checkpoint. */
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/ranks/assemble.h"
#include "worker/lbworker/ranks/sharded_state.h"

/* Of a range of parameters the bytes of an array that has an element for `each` of them. */
struct slice {
	size_t at, bytes;
};

static struct slice slice_of(struct model_unit range, size_t element_bytes, size_t each)
{
	return (struct slice){ range.first / each * element_bytes,
			       (range.count + each - 1) / each * element_bytes };
}

/* Ours for words: as it lies, or brought to *host where the host cannot look. */
static void *readable(const struct sharded *s, char *from, size_t bytes, char **host)
{
	const struct model *m = s->model;

	*host = NULL;
	if (!m->backend->arrays || bytes == 0)
		return from;
	*host = xmalloc(bytes);
	m->backend->download(m->device, *host, from, bytes);
	return *host;
}

/* The first row of each stage has all of that stage. One unit of an array on its way to the first
 * rank, where alone there is a whole. */
static int collect_unit(struct sharded *s, const struct sharded_array *c, char *whole, size_t unit,
			struct err *err)
{
	const struct mesh *mesh = &s->options.mesh;
	const struct model *m = s->model;
	const struct slice own = slice_of(sharded_own(s, unit), c->element_bytes, c->each);
	int stage = model_stage_of(m, unit), me = s->plane->rank, first = stage * mesh->size;
	char *from = c->from;
	bool is_ours = stage == s->pipe->rank;
	bool gives_any = is_ours && me != 0 && s->ranks->rank < mesh->shard;
	char *host;

	if (whole && is_ours)
		m->backend->download(m->device, whole + own.at, from + own.at, own.bytes);
	if (mesh->shard == 1 && stage == 0)
		return 0;
	void *ours = readable(s, from + own.at, gives_any ? own.bytes : 0, &host);
	for (int r = 0; r < s->plane->size; r++) {
		bool gives = gives_any && r == 0;
		bool takes = me == 0 && r != 0 && r >= first && r < first + mesh->shard;
		const struct slice theirs = slice_of(mesh_shard(mesh, &m->unit[unit],
								takes ? r - first : 0),
						     c->element_bytes, c->each);
		s->send[r] = (struct comm_part){ ours, gives ? own.bytes : 0 };
		s->receive[r] = (struct comm_part){ takes ? whole + theirs.at : NULL,
						    takes ? theirs.bytes : 0 };
	}
	int rc = ranks_exchange(s->plane, s->send, s->receive, err);
	free(host);
	return rc;
}

/* To the first of the ranks, as far as the model is here. */
static int collect(struct sharded *s, const struct sharded_array *array, void *to, struct err *err)
{
	const struct model_unit *unit = s->model->unit, *out = &array->without;
	int rc = 0;

	for (size_t u = 0; rc == 0 && u < s->model->units; u++)
		if (unit[u].first < out->first || unit[u].first >= out->first + out->count)
			rc = collect_unit(s, array, to, u, err);
	return rc;
}

int sharded_collect_whole(struct sharded *s, const struct sharded_array *array, void *to,
			  struct err *err)
{
	const struct model *m = s->model;
	bool is_first = s->plane->rank == 0;

	if (!m->whole)
		return collect(s, array, to, err);
	char *slice = is_first ? xcalloc(m->parameters, array->element_bytes) : NULL;
	int rc = collect(s, array, slice, err);
	if (rc == 0 && is_first)
		rc = assemble(s->tensor, m, slice, array->element_bytes, to, err);
	free(slice);
	return rc;
}
