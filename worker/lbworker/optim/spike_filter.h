/* SPDX-License-Identifier: MIT */
/* spike_filter.h - which steps must not touch the weights: no finite number, or a gradient far
 * above the usual. They are left out and counted; too many in a row, and the training has
 * diverged. */
#ifndef LBWORKER_SPIKE_FILTER_H
#define LBWORKER_SPIKE_FILTER_H

#include <stdint.h>

struct spike_rules {
	int64_t max_skips;   /* in a row; 0: the first one ends the training */
	double spike_factor; /* times the usual gradient norm; 0: spikes are let through */
};

/* Part of a checkpoint: a resumed training judges as the first one would have. */
struct spike_filter {
	double usual_norm; /* running mean over the steps that counted */
	int64_t judged;    /* of those */
	int64_t skipped, in_a_row;
};

enum step_verdict { STEP_GO, STEP_SKIP, STEP_DIVERGED };

/* The norm above which the next step would be a spike; INFINITY: there is no such. */
double spike_filter_limit(const struct spike_filter *filter, const struct spike_rules *rules);

/* Takes note of a step; without effects but on *filter. */
enum step_verdict spike_filter_judge(struct spike_filter *filter, const struct spike_rules *rules,
				     double loss, double norm);

#endif
