/* SPDX-License-Identifier: MIT */
/* relaunch.c - the table: what each cause of an end counts for, and how long to wait. */
#include "daemon/engine/decide/relaunch.h"

#include <stdlib.h>
#include <string.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/reconcile.h"

enum verdict {
	VERDICT_COMPLETE,
	VERDICT_KILL,
	VERDICT_FAIL,
	VERDICT_COUNT_IT, /* relaunch, within the budget, with growing pauses */
	/* not the run's fault, not counted: at once, and with growing pauses while attempts do
	 * not even start */
	VERDICT_AGAIN,
};

/* What happens where [restart.policy] says nothing else. */
static const struct {
	enum verdict verdict;
	const char *text;
} table[CAUSE_COUNT] = {
	[CAUSE_NONE] = { VERDICT_COUNT_IT, "ended without a cause" },
	[CAUSE_COMPLETED] = { VERDICT_COMPLETE, "the trainer is done" },
	[CAUSE_ERROR] = { VERDICT_COUNT_IT, "the trainer ended with an error" },
	[CAUSE_CRASH] = { VERDICT_COUNT_IT, "the trainer crashed" },
	[CAUSE_OOM] = { VERDICT_COUNT_IT, "the trainer ran out of memory" },
	[CAUSE_HANG] = { VERDICT_COUNT_IT, "the trainer hung" },
	[CAUSE_TIMEOUT] = { VERDICT_AGAIN, "the job's time limit came" },
	[CAUSE_PREEMPTED] = { VERDICT_AGAIN, "the job was preempted" },
	[CAUSE_NODE_FAIL] = { VERDICT_AGAIN, "a node failed" },
	[CAUSE_LAUNCH_FAIL] = { VERDICT_AGAIN, "the job did not start" },
	[CAUSE_KILLED] = { VERDICT_KILL, "ended on a person's order" },
	[CAUSE_DIVERGED] = { VERDICT_FAIL, "training diverged" },
	[CAUSE_LOST] = { VERDICT_COUNT_IT, "nobody knows what became of the job" },
};

static enum verdict verdict_of(const struct policy *policy, enum cause cause, bool blame_run)
{
	static const enum verdict by_rule[] = {
		[SPEC_RELAUNCH] = VERDICT_AGAIN,
		[SPEC_COUNT] = VERDICT_COUNT_IT,
		[SPEC_STOP] = VERDICT_FAIL,
	};
	enum verdict verdict = table[cause].verdict;

	if (policy->rules && policy->rules[cause] != SPEC_RULE_AUTO &&
	    verdict != VERDICT_COMPLETE && verdict != VERDICT_KILL)
		verdict = by_rule[policy->rules[cause]];
	if (cause == CAUSE_DIVERGED && policy->rolls_back && verdict == VERDICT_FAIL &&
	    !(policy->rules && policy->rules[cause] != SPEC_RULE_AUTO))
		verdict = VERDICT_COUNT_IT;
	/* a program that cannot be started is not the node's fault */
	if (cause == CAUSE_LAUNCH_FAIL && blame_run && verdict == VERDICT_AGAIN)
		verdict = VERDICT_COUNT_IT;
	return verdict;
}

bool relaunch_counts(const struct policy *policy, enum cause cause, bool blame_run)
{
	return verdict_of(policy, cause, blame_run) == VERDICT_COUNT_IT;
}

bool relaunch_was_in_vain(enum cause cause, int64_t lasted_ms, int64_t watched_ms)
{
	enum { AT_ONCE_MS = 20 * 1000 };

	/* less than nothing: the clock was set back */
	return table[cause].verdict == VERDICT_AGAIN && lasted_ms >= 0 && lasted_ms < AT_ONCE_MS &&
	       watched_ms < AT_ONCE_MS;
}

/* The trainer's own doing, as far as causes tell. */
static bool is_fault(enum cause cause)
{
	return table[cause].verdict == VERDICT_COUNT_IT || cause == CAUSE_DIVERGED;
}

/* None after a launch with progress, then 1, 2, 4 … times the first pause, up to the longest. */
static int64_t pause_ms(const struct policy *policy, int64_t failures)
{
	int64_t ms = failures > 0 ? policy->backoff_first_ms : 0;

	for (int64_t i = 1; i < failures && ms < policy->backoff_max_ms; i++)
		ms *= 2;
	return ms < policy->backoff_max_ms ? ms : policy->backoff_max_ms;
}

static bool never_again(const struct policy *policy, int exit_code)
{
	for (size_t i = 0; i < policy->never_count; i++)
		if (policy->never_on_exit_codes[i] == exit_code)
			return true;
	return false;
}

/* Up to a fifth less, so that the runs that one broken switch threw out do not come back all at
 * once. The token, random itself, decides how much: the same facts give the same pause. */
static int64_t spread(int64_t ms, const char *token)
{
	char head[9] = "";

	if (token)
		memcpy(head, token, strnlen(token, 8));
	return ms - (int64_t)((double)ms / 5 * ((double)strtoul(head, NULL, 16) / 4294967296.0));
}

static struct relaunch back_off(const struct relaunch_facts *f, int64_t ms)
{
	return (struct relaunch){ RUN_BACKOFF, spread(ms, f->token), table[f->cause].text };
}

static struct relaunch fail(const char *text)
{
	return (struct relaunch){ RUN_FAILED, 0, text };
}

static struct relaunch relaunch_counted(const struct relaunch_facts *f, const struct policy *policy)
{
	if (f->cause == CAUSE_LAUNCH_FAIL && !f->ever_trained)
		return fail("it cannot be started");
	if (f->failures >= policy->max_without_progress)
		return fail("too many launches without progress (restart.max_without_progress)");
	return back_off(f, pause_ms(policy, f->failures));
}

/* Whatever was counted before: what ends a run is a launch that counts, and lbrun starts none
 * beyond the budget. Who asked for faults not to be counted still gets a pause: a trainer that dies
 * at once would otherwise flood the scheduler with jobs. */
static struct relaunch relaunch_again(const struct relaunch_facts *f, const struct policy *policy)
{
	int64_t ms = pause_ms(policy, f->in_vain - 1), least = pause_ms(policy, is_fault(f->cause));

	return back_off(f, ms > least ? ms : least);
}

struct relaunch relaunch_decide(const struct relaunch_facts *f, const struct policy *policy)
{
	enum verdict verdict = verdict_of(policy, f->cause, f->blame_run);

	if (verdict == VERDICT_COMPLETE)
		return (struct relaunch){ RUN_COMPLETED, 0, table[f->cause].text };
	if (verdict == VERDICT_KILL)
		return (struct relaunch){ RUN_KILLED, 0, table[f->cause].text };
	if (f->is_final)
		return fail("a relaunch would meet the same");
	if (is_fault(f->cause) && f->exit_code >= 0 && never_again(policy, f->exit_code))
		return fail("the exit status is listed in restart.never_on_exit_codes");
	if (verdict == VERDICT_COUNT_IT)
		return relaunch_counted(f, policy);
	if (verdict == VERDICT_AGAIN)
		return relaunch_again(f, policy);
	return fail(table[f->cause].text);
}
