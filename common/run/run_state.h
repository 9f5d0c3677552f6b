/* SPDX-License-Identifier: MIT */
/* run/ - what the programs say to each other about a run: its states, its files, messages,
 * orders.
 *
 * run_state.h - the states of a run, the legal moves between them, and why things end: as data.
 *
 *   created ─▶ submitting ─▶ queued ─▶ running ─▶ completed
 *                  ▲  │         │         │
 *                  │  └─────────┼─────────┼─▶ failed
 *                  └─ backoff ◀─┴─────────┘
 *   created|backoff ─▶ failed (a relaunch is impossible)
 *   submitting|queued ─▶ running|completed (seen late)
 *   submitting ─▶ backoff (refused for now)
 *   any live state ─▶ stopping ─▶ completed|failed|killed
 *   any live state ─▶ killed (there is nothing to stop, or the job was ended without asking lbd)
 *   any live state ─▶ held ─▶ created
 *   failed|killed|completed ─▶ created (lbctl restart)
 *
 * The CHECK constraints of the ledger and the drawing in docs/ARCHITECTURE.md are tested against
 * the table behind run_state_may_follow. */
#ifndef COMMON_RUN_RUN_STATE_H
#define COMMON_RUN_RUN_STATE_H

#include <stdbool.h>

enum run_state {
	RUN_CREATED,    /* in the ledger; no attempt yet */
	RUN_SUBMITTING, /* an attempt has its token; the job is not known to be released */
	RUN_QUEUED,     /* the scheduler has the job, released */
	RUN_RUNNING,    /* lbrun took the claim */
	RUN_STOPPING,   /* somebody asked for its end; its job may still be there */
	RUN_BACKOFF,    /* waiting to relaunch */
	RUN_HELD,       /* a person paused it */
	RUN_COMPLETED,
	RUN_FAILED,
	RUN_KILLED,
	RUN_STATE_COUNT
};

enum attempt_state {
	ATTEMPT_INTENT,  /* token committed; the scheduler may or may not know of it */
	ATTEMPT_HELD,    /* job id committed; the job is held */
	ATTEMPT_QUEUED,  /* released */
	ATTEMPT_RUNNING, /* claimed by its lbrun */
	ATTEMPT_ENDED,
	ATTEMPT_STATE_COUNT
};

/* Why an attempt or a launch ended. */
enum cause {
	CAUSE_NONE, /* it has not */
	CAUSE_COMPLETED,
	CAUSE_ERROR, /* the trainer exited with a status other than 0 */
	CAUSE_CRASH, /* a signal that nobody sent on purpose */
	CAUSE_OOM,
	CAUSE_HANG,
	CAUSE_TIMEOUT, /* the job's time limit */
	CAUSE_PREEMPTED,
	CAUSE_NODE_FAIL,
	CAUSE_LAUNCH_FAIL, /* the job or its program never started */
	CAUSE_KILLED,      /* a person's order */
	CAUSE_DIVERGED,
	CAUSE_LOST, /* nobody can say */
	CAUSE_COUNT
};

/* What a person wants of a run, strongest last. */
enum run_order {
	ORDER_RUN,
	ORDER_HOLD, /* end the attempt with a checkpoint, start no other until released */
	ORDER_STOP, /* end for good, with a checkpoint; to lbrun, also a hold is this */
	ORDER_KILL,
	ORDER_KILL_NOW,
	ORDER_COUNT
};

const char *run_state_name(enum run_state state);
/* Behind "is": "running", "in backoff". */
const char *run_state_phrase(enum run_state state);
const char *attempt_state_name(enum attempt_state state);
const char *cause_name(enum cause cause);
const char *run_order_name(enum run_order order);

/* Back from text; the _COUNT member when there is no such name. */
enum run_state run_state_from_name(const char *name);
enum attempt_state attempt_state_from_name(const char *name);
enum cause cause_from_name(const char *name);
/* It ended by nobody's wish, and without a warning. */
bool cause_is_trouble(enum cause cause);
enum run_order run_order_from_name(const char *name);

/* A final state has no job and gets none until a person restarts the run. */
bool run_state_is_final(enum run_state state);
bool run_state_may_follow(enum run_state from, enum run_state to);

#endif
