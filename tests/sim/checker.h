/* SPDX-License-Identifier: MIT */
/* checker.h - holds a history, and what the ledger says at its end, against the promises. */
#ifndef TESTS_SIM_CHECKER_H
#define TESTS_SIM_CHECKER_H

#include <stdint.h>
#include <stdio.h>

#include "sql/ledger.h"
#include "tests/sim/history.h"

struct world_end {
	uint64_t seed;
	int64_t now_ms;
	int runs;
	struct ledger *ledger;
	int64_t spool_ms, idle_ms;   /* how often lbd reads spools, and polls at rest */
	int64_t live_jobs;           /* known to the scheduler and not over */
	int64_t polls, calls, turns; /* of lbd, in up_ms */
	int64_t up_ms;
	int64_t max_without_progress, in_place, backoff_max_ms;
	int64_t hang_max_ms;      /* lbrun ends a silent trainer within */
	int64_t left_over_max_ms; /* and ranks that srun has said it ends */
	int64_t stop_grace_ms;
	int preflight_tries; /* checks of nodes that may end attempts in a row */
	int max_excluded;    /* nodes that are avoided at most */
};

/* The number of broken promises; each is told to `out` with the history of its run. */
int history_check(const struct history *h, const struct world_end *end, FILE *out);

#endif
