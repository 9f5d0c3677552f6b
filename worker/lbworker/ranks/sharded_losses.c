/* SPDX-License-Identifier: MIT */
/* sharded_losses.c - losses of all ranks, added up in the order of micro-batches, and what ranks
 * tell each other beside them. */
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/ranks/sharded_state.h"

static int64_t waves_of(const struct sharded *s, int64_t leaves)
{
	return (leaves + s->ranks->size - 1) / s->ranks->size;
}

/* all[size * waves], by rank: added up in the order of micro-batches. */
static double add_losses(const struct sharded *s, const double *all, int64_t leaves)
{
	int64_t waves = waves_of(s, leaves), size = s->ranks->size;
	double sum = 0;

	for (int64_t i = 0; i < leaves; i++)
		sum += all[i % size * waves + i / size];
	return sum;
}

/* What all ranks of the world have made, [world->size * waves], as add_losses() takes it: of those
 * with the same samples we look at the last stage, and of slices at ours, as all have made the
 * same. */
static void pick_losses(const struct sharded *s, const char *packets, size_t bytes, size_t at,
			size_t waves, double *all)
{
	size_t slices = (size_t)s->tensor->size, copies = (size_t)s->ranks->size;
	size_t stage = (size_t)s->pipe->size - 1;

	for (size_t r = 0; r < copies; r++) {
		size_t rank = (stage * copies + r) * slices + (size_t)s->tensor->rank;
		memcpy(all + r * waves, packets + rank * bytes + at, waves * sizeof(*all));
	}
}

int sharded_losses(struct sharded *s, const double *loss, int64_t leaves, double *sum,
		   struct err *err)
{
	size_t waves = (size_t)waves_of(s, leaves), bytes = waves * sizeof(*loss);
	double *packets = xcalloc(waves * (size_t)s->world->size, sizeof(*packets));
	double *all = xcalloc(waves * (size_t)s->ranks->size, sizeof(*all));
	int rc = ranks_gather(s->world, loss, bytes, packets, err);

	pick_losses(s, (const char *)packets, bytes, 0, waves, all);
	*sum = add_losses(s, all, leaves);
	free(all);
	free(packets);
	return rc;
}

int sharded_tell(struct sharded *s, const double *loss, int64_t leaves,
		 const struct rank_note *mine, struct rank_note *notes, double *sum,
		 struct err *err)
{
	size_t waves = (size_t)waves_of(s, leaves), size = (size_t)s->world->size;
	size_t bytes = sizeof(*mine) + waves * sizeof(*loss);
	char *packet = xmalloc(bytes), *packets = xcalloc(size, bytes);
	double *all = xcalloc(waves * (size_t)s->ranks->size, sizeof(*all));

	memcpy(packet, mine, sizeof(*mine));
	memcpy(packet + sizeof(*mine), loss, waves * sizeof(*loss));
	int rc = ranks_gather(s->world, packet, bytes, packets, err);
	for (size_t r = 0; rc == 0 && r < size; r++)
		memcpy(&notes[r], packets + r * bytes, sizeof(*notes));
	pick_losses(s, packets, bytes, sizeof(*mine), waves, all);
	*sum = add_losses(s, all, leaves);
	free(all);
	free(packets);
	free(packet);
	return rc;
}
