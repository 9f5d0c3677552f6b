/* SPDX-License-Identifier: MIT */
/* search.c - a round of the search: every rank works in its group, and all hear of all. */
#include "worker/lbworker/check/search.h"

#include <stdlib.h>

#include "common/base/mem.h"
#include "common/check/node_search.h"
#include "worker/lbworker/check/together.h"

enum { SEARCH_BYTES = 4 << 20 };

struct outcome {
	bool has_failed;
	double bus_gbs; /* 0: in no group */
};

static bool is_in(const struct node_group *g, int rank)
{
	int behind = rank - g->first;

	return behind >= 0 && behind % g->stride == 0 && behind / g->stride < g->count;
}

/* Who is in no group waits for the others at the end of the round. */
static int work(struct ranks *ranks, const struct node_group *g, struct outcome *out,
		struct err *err)
{
	char fault[160] = "";
	struct ranks group;
	double seconds;

	ranks_group(&group, ranks, g->first, g->stride, g->count);
	int rc = check_sum(&group, SEARCH_BYTES, &seconds, fault, sizeof(fault), err);
	ranks_close(&group);
	out->has_failed = fault[0] != '\0';
	out->bus_gbs = SEARCH_BYTES / seconds * 1e-9 * 2 * (g->count - 1) / g->count;
	return rc;
}

static double best_of(const struct outcome *all, int size)
{
	double best = 0;

	for (int i = 0; i < size; i++)
		best = all[i].bus_gbs > best ? all[i].bus_gbs : best;
	return best;
}

static int one_round(struct ranks *ranks, struct node_search *s, double slow_share,
		     struct outcome *all, bool *has_failed, struct err *err)
{
	struct outcome mine = { 0 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < s->asks; i++)
		if (is_in(&s->ask[i], ranks->rank))
			rc = work(ranks, &s->ask[i], &mine, err);
	if (rc || ranks_gather(ranks, &mine, sizeof(mine), all, err))
		return -1;
	double least = slow_share * best_of(all, ranks->size);
	for (int i = 0; i < s->asks; i++) {
		has_failed[i] = false;
		for (int r = 0; r < ranks->size; r++)
			has_failed[i] |= is_in(&s->ask[i], r) &&
					 (all[r].has_failed || all[r].bus_gbs < least);
	}
	node_search_heard(s, has_failed);
	return 0;
}

int check_search(struct ranks *ranks, double slow_share, bool *is_bad, int *rounds, struct err *err)
{
	struct outcome *all = xcalloc((size_t)ranks->size, sizeof(*all));
	bool *has_failed = xcalloc((size_t)ranks->size + 1, sizeof(*has_failed));
	struct node_search s;
	int rc = 0;

	node_search_begin(&s, ranks->size);
	while (rc == 0 && node_search_next(&s))
		rc = one_round(ranks, &s, slow_share, all, has_failed, err);
	*is_bad = s.standing[ranks->rank] == NODE_BAD;
	*rounds = s.rounds;
	int bad = node_search_bad(&s);
	node_search_end(&s);
	free(has_failed);
	free(all);
	return rc ? -1 : bad;
}
