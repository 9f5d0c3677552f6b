/* SPDX-License-Identifier: MIT */
/* relaunch.h - what becomes of a run when an attempt has ended: the policy table, pure. */
#ifndef DAEMON_ENGINE_DECIDE_RELAUNCH_H
#define DAEMON_ENGINE_DECIDE_RELAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/run/run_state.h"

struct policy;

struct relaunch_facts {
	enum cause cause;
	int exit_code; /* -1 = none */
	/* lbrun's own word: a launch_fail is then the run's fault, not the node's */
	bool blame_run;
	bool is_final;     /* lbrun's word, too: only a person can help */
	bool ever_trained; /* some launch of the run got past its start */
	int64_t in_vain;   /* newest attempts in a row that never started, or were over at once */
	const char *token; /* of the attempt; spreads the pauses. NULL: they are as they stand */
	int64_t failures;  /* launches without progress in a row, this one included */
};

struct relaunch {
	enum run_state to;  /* RUN_COMPLETED, RUN_FAILED, RUN_KILLED or RUN_BACKOFF */
	int64_t backoff_ms; /* 0 = at once */
	const char *text;   /* why; a constant */
};

struct relaunch relaunch_decide(const struct relaunch_facts *f, const struct policy *policy);

/* Does a launch that ended so count against restart.max_without_progress? */
bool relaunch_counts(const struct policy *policy, enum cause cause, bool blame_run);

/* Was an attempt that started over at once, and is not to count? Then it was in vain: a script that
 * asks for a requeue in its first line, a partition that preempts whatever comes. It lasted so long
 * by the wall clock, which may have been set since, and while this lbd watched. */
bool relaunch_was_in_vain(enum cause cause, int64_t lasted_ms, int64_t watched_ms);

#endif
