/* SPDX-License-Identifier: MIT */
/* suspects.h - nodes where one run came to a bad end, as long as it may be the run's own fault.
 * Pure.
 *
 * A wrong path for the job's output, or a trainer that crashes, looks on one node like a broken
 * node. What tells them apart is the same run elsewhere: a node is to blame if the run ended so
 * wherever it had that node, nowhere else, and then got on. Until then only the run itself keeps
 * away from its suspects: other runs hear nothing of them. */
#ifndef DAEMON_ENGINE_DECIDE_SUSPECTS_H
#define DAEMON_ENGINE_DECIDE_SUSPECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/run_state.h"

enum { SUSPECT_NAME_BYTES = 64, SUSPECTS_MAX = 64 };

struct suspect {
	char node[SUSPECT_NAME_BYTES + 1];
	enum cause cause;
	int64_t ends; /* of the run's ends for this cause those on this node */
	double blame; /* the sum of what these add to its score (node_memory.h) */
};

/* All zero: none. */
struct suspects {
	struct suspect *items; /* owned */
	size_t count;
	int64_t ends[CAUSE_COUNT]; /* since the run last got on */
};

/* One more end for this cause; then suspects_add for each node that may have done it. Beyond
 * SUSPECTS_MAX nodes nothing is kept: the blame that so many share is next to nothing. */
void suspects_end(struct suspects *s, enum cause cause);
void suspects_add(struct suspects *s, enum cause cause, const char *node, double blame);

/* For how much the run itself mistrusts the node. */
double suspects_blame(const struct suspects *s, const char *node);

/* Now that the run has got on: what this one adds to its node's score for everybody. 0: the run
 * ended so on other nodes, too. */
double suspects_proven(const struct suspects *s, const struct suspect *suspect);

/* The run ended so more than once, and no node was there each time: it is the run's own fault. */
bool suspects_clear_nodes(const struct suspects *s, enum cause cause);

/* CAUSE_NONE: all of them. */
void suspects_forget(struct suspects *s, enum cause cause);

#endif
