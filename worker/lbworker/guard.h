/* SPDX-License-Identifier: MIT */
/* guard.h - which steps must not touch the weights: no finite number, or a gradient far above the
 * usual. They are left out and counted; too many in a row, and the training has diverged. */
#ifndef LBWORKER_GUARD_H
#define LBWORKER_GUARD_H

#include <stdint.h>

struct guard_rules {
	int64_t max_skips;		/* in a row; 0: the first one ends the training */
	double spike_factor;		/* times the usual gradient norm; 0: spikes are let through */
};

/* Part of a checkpoint: a resumed training judges as the first one would have. */
struct guard {
	double usual_norm;		/* running mean over the steps that counted */
	int64_t judged;			/* of those */
	int64_t skipped, in_a_row;
};

enum guard_verdict { GUARD_GO, GUARD_SKIP, GUARD_DIVERGED };

/* The norm above which the next step would be a spike; INFINITY: there is no such. */
double guard_limit(const struct guard *guard, const struct guard_rules *rules);

/* Takes note of a step; without effects but on *guard. */
enum guard_verdict guard_judge(struct guard *guard, const struct guard_rules *rules, double loss,
			       double norm);

#endif
