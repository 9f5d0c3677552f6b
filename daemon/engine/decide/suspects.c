/* SPDX-License-Identifier: MIT */
/* suspects.c - a run's bad ends by node and cause, and what they prove. */
#include "daemon/engine/decide/suspects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "daemon/engine/decide/node_memory.h"

void suspects_end(struct suspects *s, enum cause cause)
{
	s->ends[cause]++;
}

static struct suspect *find(const struct suspects *s, enum cause cause, const char *node)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].cause == cause && strcmp(s->items[i].node, node) == 0)
			return &s->items[i];
	return NULL;
}

void suspects_add(struct suspects *s, enum cause cause, const char *node, double blame)
{
	struct suspect *item = find(s, cause, node);

	if (item == NULL && s->count == SUSPECTS_MAX)
		return;
	if (item == NULL) {
		s->items = xrealloc(s->items, (s->count + 1) * sizeof(s->items[0]));
		item = &s->items[s->count++];
		*item = (struct suspect){ .cause = cause };
		snprintf(item->node, sizeof(item->node), "%s", node);
	}
	item->ends++;
	item->blame += blame;
}

double suspects_blame(const struct suspects *s, const char *node)
{
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->items[i].node, node) == 0)
			sum += s->items[i].blame;
	return sum;
}

static bool was_always_there(const struct suspects *s, const struct suspect *suspect)
{
	return suspect->ends == s->ends[suspect->cause];
}

double suspects_proven(const struct suspects *s, const struct suspect *suspect)
{
	if (!was_always_there(s, suspect))
		return 0;
	/* somebody may have mended the job meanwhile: one run's word does not bench a node */
	return suspect->cause == CAUSE_LAUNCH_FAIL ? NODE_UNBEGUN_BLAME : suspect->blame;
}

bool suspects_clear_nodes(const struct suspects *s, enum cause cause)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].cause == cause && was_always_there(s, &s->items[i]))
			return false;
	return s->ends[cause] > 1;
}

void suspects_forget(struct suspects *s, enum cause cause)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++)
		if (cause != CAUSE_NONE && s->items[i].cause != cause)
			s->items[kept++] = s->items[i];
	s->count = kept;
	if (cause == CAUSE_NONE)
		memset(s->ends, 0, sizeof(s->ends));
	else
		s->ends[cause] = 0;
}
