/* SPDX-License-Identifier: MIT */
/* advice.h - how often a run should save: what a checkpoint costs it, from its spools, how often
 * trouble comes, and the interval between saves that loses least. Pure.
 *
 * A save's cost is what the slowest stretches between two told steps took beyond the usual time of
 * a step: as many of them as there were saves, and of these the median, so that a few other stalls
 * do not count. It is not known where steps are told in heaps, or saves take no time that shows.
 * Troubles are launches that ended by nobody's wish, of all runs where the ledger can be asked;
 * interval.h has their rate. */
#ifndef CTL_REPORT_ADVICE_H
#define CTL_REPORT_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checkpoint/interval.h"
#include "common/run/spool.h"

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
/* `seen`: the troubles that count; NULL: the run's own. */
void advice_work_out(struct advice_facts *f, int64_t now_ms, const struct troubles *seen,
		     struct advice *out);

#endif
