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
	    ((cause == CAUSE_LAUNCH_FAIL || cause == CAUSE_NODE_FAIL) && blame_run))
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

static double repeated(const struct node_rules *rules)
{
	return rules->repeat_half_life_ms > 0 ? NODE_REPEATED * rules->threshold : INFINITY;
}

static bool is_avoided(const struct node_note *n, const struct node_rules *rules)
{
	return n->score + n->own >= rules->threshold || n->record >= repeated(rules);
}

int64_t node_avoided_ms(double score, double record, const struct node_rules *rules)
{
	int64_t ms = 0, long_ms = 0;

	if (score >= rules->threshold)
		ms = (int64_t)(log2(score / rules->threshold) * (double)rules->half_life_ms);
	if (record >= repeated(rules))
		long_ms = (int64_t)(log2(record / repeated(rules)) *
				    (double)rules->repeat_half_life_ms);
	return ms > long_ms ? ms : long_ms;
}

size_t node_limit(const struct node_rules *rules, size_t known)
{
	size_t limit = (size_t)rules->max_excluded,
	       share = (size_t)(rules->max_share * (double)known);

	if (rules->max_share <= 0 || limit == 0)
		return limit;
	share = share > 0 ? share : 1;
	return share < limit ? share : limit;
}

static double weight(const struct node_note *n)
{
	return n->score + n->record + n->own;
}

/* Equal scores by name, so that the choice is always the same. */
static int worst_first(const void *a, const void *b)
{
	const struct node_note *x = a, *y = b;

	if (x->is_avoided != y->is_avoided)
		return x->is_avoided ? -1 : 1;
	if (weight(x) != weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	return strcmp(x->name, y->name);
}

static double record_at(const struct node_note *n, const struct node_rules *rules, int64_t now_ms)
{
	return rules->repeat_half_life_ms > 0
		       ? node_score_at(n->record, n->score_ms, now_ms, rules->repeat_half_life_ms)
		       : 0;
}

size_t node_choose(struct node_note *notes, size_t count, size_t known,
		   const struct node_rules *rules, int64_t now_ms)
{
	size_t chosen = 0, avoided = 0;

	for (size_t i = 0; i < count; i++) {
		notes[i].score = node_score_at(notes[i].score, notes[i].score_ms, now_ms,
					       rules->half_life_ms);
		notes[i].record = record_at(&notes[i], rules, now_ms);
		notes[i].score_ms = now_ms;
		notes[i].is_avoided = is_avoided(&notes[i], rules);
		avoided += notes[i].is_avoided;
	}
	if (count > 0)
		qsort(notes, count, sizeof(notes[0]), worst_first);
	while (chosen < avoided && chosen < node_limit(rules, known))
		chosen++;
	return chosen;
}
