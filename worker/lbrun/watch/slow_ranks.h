/* SPDX-License-Identifier: MIT */
/* slow_ranks.h - is one rank steadily slower than the others? Pure.
 *
 * All ranks wait for the slowest one in every step, so only what each tells of its own work
 * ("step_ms", without waiting for others) says who it is. */
#ifndef LBRUN_WATCH_SLOW_RANKS_H
#define LBRUN_WATCH_SLOW_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RANKS_MAX = 16384,
	RANKS_SPAN = 32,   /* steps that a mean remembers, and between two looks */
	RANKS_STRIKES = 3, /* looks in a row before a rank is named */
};

struct rank_pace {
	double mean_ms, mean_data_ms; /* of it for samples, where told */
	int64_t count;                /* steps told */
	int strikes;
	bool is_told;
};

struct ranks {
	struct rank_pace *items; /* by rank */
	size_t count;            /* ranks known: the highest + 1 */
	int64_t until_look;      /* steps of rank 0 until the next look */
};

void ranks_reset(struct ranks *r);
/* Some rank's own time for a step. Returns the rank that is now found to be slow, each once; -1 =
 * none. *usual_ms is what the others take. */
int64_t ranks_step(struct ranks *r, int64_t rank, double ms, double data_ms, double *usual_ms);

#endif
