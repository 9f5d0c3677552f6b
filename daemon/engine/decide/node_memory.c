/* SPDX-License-Identifier: MIT */
/* node_memory.c - scores that fade, and the worst nodes above the threshold. */
#include "daemon/engine/decide/node_memory.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What nobody sends by hand, and no kernel that is out of memory. */
static bool points_at_node(int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE;
}

double node_blame(enum cause cause, bool blame_run, int signal, size_t nodes)
{
	static const double weights[CAUSE_COUNT] = {
		[CAUSE_NODE_FAIL] = 1,
		[CAUSE_LAUNCH_FAIL] = 1,
		[CAUSE_CRASH] = 0.5,
		[CAUSE_HANG] = 0.25,
	};

	if (nodes == 0 || (cause == CAUSE_CRASH && !points_at_node(signal)) ||
	    (cause == CAUSE_LAUNCH_FAIL && blame_run))
		return 0;
	return weights[cause] / (double)nodes;
}

double node_blame_named(enum cause cause)
{
	static const double weights[CAUSE_COUNT] = {
		[CAUSE_CRASH] = 0.5,   [CAUSE_ERROR] = 0.5,
		[CAUSE_HANG] = 0.5,    [CAUSE_LAUNCH_FAIL] = 1, /* it was checked, and is broken */
		[CAUSE_NODE_FAIL] = 1,                          /* nobody hears it any more */
	};

	return weights[cause];
}

double node_score_at(double score, int64_t score_ms, int64_t now_ms, int64_t half_life_ms)
{
	if (now_ms <= score_ms)
		return score;
	return score * exp2(-(double)(now_ms - score_ms) / (double)half_life_ms);
}

int64_t node_avoided_ms(double score, const struct node_rules *rules)
{
	if (score < rules->threshold)
		return 0;
	return (int64_t)(log2(score / rules->threshold) * (double)rules->half_life_ms);
}

/* Equal scores by name, so that the choice is always the same. */
static int worst_first(const void *a, const void *b)
{
	const struct node_note *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return strcmp(x->name, y->name);
}

size_t node_choose(struct node_note *notes, size_t count, const struct node_rules *rules,
		   int64_t now_ms)
{
	size_t chosen = 0;

	for (size_t i = 0; i < count; i++) {
		notes[i].score = node_score_at(notes[i].score, notes[i].score_ms, now_ms,
					       rules->half_life_ms);
		notes[i].score_ms = now_ms;
	}
	if (count > 0)
		qsort(notes, count, sizeof(notes[0]), worst_first);
	while (chosen < count && (int64_t)chosen < rules->max_excluded &&
	       notes[chosen].score >= rules->threshold)
		chosen++;
	return chosen;
}
