/* SPDX-License-Identifier: MIT */
/* far_ranks.h - the ranks of a launch on other nodes than lbrun's. They live by heartbeats: the
 * real rules of both ends (worker/lbrun/heartbeat/beat.h) with an invented network between them.
 *
 * As long as all is well nobody needs to see single beats: they are sent from when something
 * happens until all leases are as they were. */
#ifndef TESTS_SIM_FAR_RANKS_H
#define TESTS_SIM_FAR_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/lbrun/heartbeat/beat.h"

struct sim;
struct lbrun;

enum { FAR_RANKS = 2, NODE_TIMEOUT_MS = 30 * 1000 };

struct far_rank {
	int node;
	bool lives;
	bool is_unseen; /* gone, and its end was told to nobody */
	struct lease lease;
	int64_t next_ms; /* its next beat */
	int64_t term_ms; /* slurmd ends it then; 0 = it does not */
};

/* Of one launch. It may outlive the launch, and lbrun. */
struct far {
	struct far *older; /* of the launch before; owned */
	struct lbrun *p;
	int64_t launch;
	struct far_rank ranks[FAR_RANKS];
	bool is_alone; /* one runs, and nothing of the launch on lbrun's node does */
	bool is_stirred;
};

/* srun starts them, and the listener hears them from now on. */
void far_start(struct sim *sim, struct lbrun *p);
/* The listener answers no more, and tells them to end. */
void far_close(struct sim *sim, struct lbrun *p);
/* srun has ended: those that it can reach have, too. */
void far_end(struct sim *sim, struct lbrun *p);
/* Can srun not reach some rank, or not know that it is gone? It waits for it then. */
bool far_is_out_of_reach(const struct sim *sim, const struct lbrun *p);
/* Something happens to lbrun's processes, its job or a node: before, as their leases are then, and
 * after it. */
void far_stir(struct sim *sim, struct lbrun *p);
/* All ranks on that node die with it; else it is cut off, or frozen, as sim->slurm.nodes says. */
void far_hit(struct sim *sim, int node, bool is_dead);
/* Is a rank of its newest launch there? */
bool far_is_on(const struct lbrun *p, int node);
/* The lease of the rank beside lbrun, while their node was frozen: it waits for an answer. */
bool far_is_lease_over(const struct sim *sim, const struct lbrun *p);
/* Has some node of them failed, and not lbrun's? */
bool far_is_hit(const struct sim *sim, const struct lbrun *p);
void far_clear(struct lbrun *p);

#endif
