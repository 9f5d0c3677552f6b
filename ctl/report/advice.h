/* SPDX-License-Identifier: MIT */
/* advice.h - how often a run should save: what a checkpoint costs it and how often trouble comes, both from
 * its spools, and the interval between saves that loses least. Pure.
 *
 * A save's cost is what the slowest stretches between two told steps took beyond the usual time of a step:
 * as many of them as there were saves, and of these the median, so that a few other stalls do not count.
 * Troubles are launches that ended by nobody's wish. They fade with a half-life of 30 days, and a young
 * run leans on a published rate, which weighs as much as one trouble. */
#ifndef CTL_REPORT_ADVICE_H
#define CTL_REPORT_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/spool.h"

/* Of nodes and days: Llama 3 had 419 unexpected interruptions in 54 days on 2,048 nodes (arXiv
 * 2407.21783). */
#define ADVICE_PRIOR_PER_NODE_DAY (419.0 / (54 * 2048))

struct advice_gap {
	double seconds;
	int64_t steps;
};
struct advice_launch {
	int64_t from_ms, to_ms, nodes;
	bool is_trouble;
};

struct advice_facts {
	struct advice_gap *gaps; /* between told steps of one launch; owned */
	size_t gap_count;
	double *between_s; /* between saves of one launch; owned */
	size_t between_count;
	int64_t saves;
	struct advice_launch *launches; /* owned */
	size_t launch_count;
	int64_t step, step_ms, saved_ms, nodes; /* of the launch that is read; -1, 0: none yet */
};

struct advice {
	double step_s, save_s, interval_s; /* measured, medians; NAN = not known */
	int64_t saves, troubles;
	double node_days;
	double mtbf_s;              /* between troubles of this run, on the nodes that it has */
	double best_s;              /* the interval that loses least; NAN = not known */
	double lost_now, lost_best; /* shares of time: saving, and steps done again */
};

/* The lines of all attempts, in order. */
void advice_add(struct advice_facts *f, const struct spool_line *line);
void advice_clear(struct advice_facts *f);
void advice_work_out(struct advice_facts *f, int64_t now_ms, struct advice *out);

/* Between the ends of saves that take save_s, with a trouble each mtbf_s on average: Daly (2006), who refines
 * Young (1974). */
double advice_interval_s(double save_s, double mtbf_s);

#endif
