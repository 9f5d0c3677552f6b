/* SPDX-License-Identifier: MIT */
/* slow_ranks.c - each rank's median of its last steps against that of all. */
#include "worker/lbrun/watch/slow_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/mem.h"

/* A fifth more than usual in every step is a fifth of the whole job's time. */
static const double slow_factor = 1.2;

void ranks_reset(struct ranks *r)
{
	free(r->items);
	*r = (struct ranks){ .until_look = RANKS_SPAN };
}

static void grow(struct ranks *r, size_t count)
{
	if (count <= r->count)
		return;
	r->items = xrealloc(r->items, count * sizeof(r->items[0]));
	memset(r->items + r->count, 0, (count - r->count) * sizeof(r->items[0]));
	r->count = count;
}

/* The median of all; of two the smaller, because one of them is the suspect. 0 = cannot be told. */
static double usual(const struct ranks *r)
{
	double *means = xcalloc(r->count, sizeof(means[0]));
	double ms = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (r->items[i].count >= RANKS_SPAN)
			means[n++] = r->items[i].mean_ms;
	}
	if (n > 1) {
		qsort(means, n, sizeof(means[0]), compare_double);
		ms = means[(n - 1) / 2];
	}
	free(means);
	return ms;
}

static int64_t look(struct ranks *r, double *usual_ms)
{
	int64_t slow = -1;

	*usual_ms = usual(r);
	for (size_t i = 0; i < r->count; i++) {
		struct rank_pace *p = &r->items[i];
		bool is_slow = *usual_ms > 0 && p->count >= RANKS_SPAN &&
			       p->mean_ms > *usual_ms * slow_factor;

		p->strikes = is_slow ? p->strikes + 1 : 0;
		if (p->strikes >= RANKS_STRIKES && !p->is_told && slow < 0) {
			p->is_told = true;
			slow = (int64_t)i;
		}
	}
	return slow;
}

/* Over all steps at first, then with a memory. */
static void update(double *mean, double value, int64_t count)
{
	*mean += (value - *mean) / (double)(count < RANKS_SPAN ? count : RANKS_SPAN);
}

int64_t ranks_step(struct ranks *r, int64_t rank, double ms, double data_ms, double *usual_ms)
{
	struct rank_pace *p;

	if (rank < 0 || rank >= RANKS_MAX || !(ms > 0))
		return -1;
	grow(r, (size_t)rank + 1);
	p = &r->items[rank];
	p->count++;
	update(&p->mean_ms, ms, p->count);
	update(&p->mean_data_ms, data_ms, p->count);
	if (rank != 0 || --r->until_look > 0)
		return -1;
	r->until_look = RANKS_SPAN;
	return look(r, usual_ms);
}
