/* SPDX-License-Identifier: MIT */
/* assemble.c - each rank sends its slice to the first, which puts it in place, one after the
 * other. */
#include "worker/lbworker/ranks/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/slice.h"

/* Where rank's tensors lie there: its model, without memory. */
static int plan_of(const struct model *m, int rank, struct model **out, struct err *err)
{
	struct model_options options = m->options;

	options.split.rank = rank;
	return model_plan(out, &m->whole->shape, &options, err);
}

static void put(const struct model *theirs, const char *slice, size_t bytes, char *to)
{
	struct slice_run run;

	for (size_t i = 0; i < theirs->tensors; i++) {
		struct slice_walk walk = slice_begin(theirs, i);
		while (slice_next(&walk, &run))
			memcpy(to + (theirs->whole->tensor[i].offset + run.whole) * bytes,
			       slice + (theirs->tensor[i].offset + run.local) * bytes,
			       run.count * bytes);
	}
}

/* From rank `from` to the first; others only take part. */
static int hand_over(struct ranks *ranks, int from, void *slice, void *received, size_t bytes,
		     struct err *err)
{
	size_t size = (size_t)ranks->size;
	struct comm_part *send = xcalloc(2 * size, sizeof(*send)), *receive = send + size;

	if (ranks->rank == from)
		send[0] = (struct comm_part){ slice, bytes };
	if (ranks->rank == 0)
		receive[from] = (struct comm_part){ received, bytes };
	int rc = ranks_exchange(ranks, send, receive, err);
	free(send);
	return rc;
}

int assemble(struct ranks *ranks, const struct model *m, void *slice, size_t element_bytes,
	     void *to, struct err *err)
{
	int rc = 0;

	if (to)
		put(m, slice, element_bytes, to);
	for (int r = 1; rc == 0 && r < ranks->size; r++) {
		struct model *theirs;
		if (plan_of(m, r, &theirs, err))
			return -1;
		size_t bytes = theirs->parameters * element_bytes;
		char *received = to ? xmalloc(bytes) : NULL;
		rc = hand_over(ranks, r, slice, received, bytes, err);
		if (rc == 0 && to)
			put(theirs, received, element_bytes, to);
		free(received);
		model_destroy(theirs);
	}
	return rc;
}
