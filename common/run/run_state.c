/* SPDX-License-Identifier: MIT */
/* run_state.c - the table of legal moves, and the names of states and causes.
 *
 * The moves are data, so that the ledger's constraints and the drawing in the docs can be held
 * against them. Where a poll comes late a state may be passed over: a job that was released,
 * started and ended between two looks goes from submitting to completed in one move. */
#include "common/run/run_state.h"

#include <string.h>

static const char *const run_states[RUN_STATE_COUNT] = {
	[RUN_CREATED] = "created", [RUN_SUBMITTING] = "submitting", [RUN_QUEUED] = "queued",
	[RUN_RUNNING] = "running", [RUN_STOPPING] = "stopping",     [RUN_BACKOFF] = "backoff",
	[RUN_HELD] = "held",       [RUN_COMPLETED] = "completed",   [RUN_FAILED] = "failed",
	[RUN_KILLED] = "killed",
};

static const char *const attempt_states[ATTEMPT_STATE_COUNT] = {
	[ATTEMPT_INTENT] = "intent",   [ATTEMPT_HELD] = "held",   [ATTEMPT_QUEUED] = "queued",
	[ATTEMPT_RUNNING] = "running", [ATTEMPT_ENDED] = "ended",
};

static const char *const causes[CAUSE_COUNT] = {
	[CAUSE_NONE] = "none",
	[CAUSE_COMPLETED] = "completed",
	[CAUSE_ERROR] = "error",
	[CAUSE_CRASH] = "crash",
	[CAUSE_OOM] = "oom",
	[CAUSE_HANG] = "hang",
	[CAUSE_TIMEOUT] = "timeout",
	[CAUSE_PREEMPTED] = "preempted",
	[CAUSE_NODE_FAIL] = "node_fail",
	[CAUSE_LAUNCH_FAIL] = "launch_fail",
	[CAUSE_KILLED] = "killed",
	[CAUSE_DIVERGED] = "diverged",
	[CAUSE_LOST] = "lost",
};

static const char *const orders[ORDER_COUNT] = {
	[ORDER_RUN] = "run",   [ORDER_HOLD] = "hold",         [ORDER_STOP] = "stop",
	[ORDER_KILL] = "kill", [ORDER_KILL_NOW] = "kill_now",
};

#define TO(state) (1u << (state))

/* Straight to killed: there was nothing to stop, or somebody ended the job without asking lbd. */
enum { ANY_TIME = TO(RUN_STOPPING) | TO(RUN_HELD) | TO(RUN_KILLED) };

static const unsigned moves[RUN_STATE_COUNT] = {
	[RUN_CREATED] = ANY_TIME | TO(RUN_SUBMITTING) | TO(RUN_FAILED),
	[RUN_SUBMITTING] = ANY_TIME | TO(RUN_QUEUED) | TO(RUN_RUNNING) | TO(RUN_BACKOFF) |
			   TO(RUN_COMPLETED) | TO(RUN_FAILED),
	[RUN_QUEUED] = ANY_TIME | TO(RUN_RUNNING) | TO(RUN_BACKOFF) | TO(RUN_COMPLETED) |
		       TO(RUN_FAILED),
	[RUN_RUNNING] = ANY_TIME | TO(RUN_BACKOFF) | TO(RUN_COMPLETED) | TO(RUN_FAILED),
	[RUN_STOPPING] = TO(RUN_HELD) | TO(RUN_COMPLETED) | TO(RUN_FAILED) | TO(RUN_KILLED),
	[RUN_BACKOFF] = ANY_TIME | TO(RUN_SUBMITTING) | TO(RUN_FAILED),
	[RUN_HELD] = TO(RUN_CREATED) | TO(RUN_STOPPING) | TO(RUN_KILLED),
	[RUN_COMPLETED] = TO(RUN_CREATED),
	[RUN_FAILED] = TO(RUN_CREATED),
	[RUN_KILLED] = TO(RUN_CREATED),
};

static const char *name_of(const char *const *names, unsigned count, unsigned value)
{
	return value < count ? names[value] : "?";
}

static unsigned value_of(const char *const *names, unsigned count, const char *name)
{
	unsigned i = 0;

	while (name && i < count && strcmp(names[i], name) != 0)
		i++;
	return name ? i : count;
}

const char *run_state_name(enum run_state state)
{
	return name_of(run_states, RUN_STATE_COUNT, state);
}

const char *run_state_phrase(enum run_state state)
{
	return state == RUN_BACKOFF ? "in backoff" : run_state_name(state);
}

const char *attempt_state_name(enum attempt_state state)
{
	return name_of(attempt_states, ATTEMPT_STATE_COUNT, state);
}

const char *cause_name(enum cause cause)
{
	return name_of(causes, CAUSE_COUNT, cause);
}

const char *run_order_name(enum run_order order)
{
	return name_of(orders, ORDER_COUNT, order);
}

enum run_state run_state_from_name(const char *name)
{
	return (enum run_state)value_of(run_states, RUN_STATE_COUNT, name);
}

enum attempt_state attempt_state_from_name(const char *name)
{
	return (enum attempt_state)value_of(attempt_states, ATTEMPT_STATE_COUNT, name);
}

enum cause cause_from_name(const char *name)
{
	return (enum cause)value_of(causes, CAUSE_COUNT, name);
}

enum run_order run_order_from_name(const char *name)
{
	return (enum run_order)value_of(orders, ORDER_COUNT, name);
}

bool run_state_is_final(enum run_state state)
{
	return state == RUN_COMPLETED || state == RUN_FAILED || state == RUN_KILLED;
}

bool run_state_may_follow(enum run_state from, enum run_state to)
{
	if ((unsigned)from >= RUN_STATE_COUNT || (unsigned)to >= RUN_STATE_COUNT)
		return false;
	return (moves[from] & TO(to)) != 0;
}

bool cause_is_trouble(enum cause cause)
{
	return cause != CAUSE_NONE && cause != CAUSE_COMPLETED && cause != CAUSE_KILLED &&
	       cause != CAUSE_TIMEOUT;
}
