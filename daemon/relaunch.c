/* SPDX-License-Identifier: MIT */
#include "daemon/relaunch.h"

#include "daemon/reconcile.h"

enum verdict {
	VERDICT_COMPLETE,
	VERDICT_KILL,
	VERDICT_FAIL,
	VERDICT_COUNT_IT,	/* relaunch, within the budget, with growing pauses */
	VERDICT_AGAIN,		/* not the run's fault, not counted: at once, and with growing pauses
				   while attempts do not even start */
};

static const struct {
	enum verdict verdict;
	const char *text;
} table[CAUSE_COUNT] = {
	[CAUSE_NONE]        = { VERDICT_COUNT_IT, "ended without a cause" },
	[CAUSE_COMPLETED]   = { VERDICT_COMPLETE, "the trainer is done" },
	[CAUSE_ERROR]       = { VERDICT_COUNT_IT, "the trainer ended with an error" },
	[CAUSE_CRASH]       = { VERDICT_COUNT_IT, "the trainer crashed" },
	[CAUSE_OOM]         = { VERDICT_COUNT_IT, "the trainer ran out of memory" },
	[CAUSE_HANG]        = { VERDICT_COUNT_IT, "the trainer hung" },
	[CAUSE_TIMEOUT]     = { VERDICT_AGAIN,  "the job's time limit came" },
	[CAUSE_PREEMPTED]   = { VERDICT_AGAIN,  "the job was preempted" },
	[CAUSE_NODE_FAIL]   = { VERDICT_AGAIN,    "a node failed" },
	[CAUSE_LAUNCH_FAIL] = { VERDICT_AGAIN,    "the job did not start" },
	[CAUSE_KILLED]      = { VERDICT_KILL,     "ended on a person's order" },
	[CAUSE_DIVERGED]    = { VERDICT_FAIL,     "training diverged" },
	[CAUSE_LOST]        = { VERDICT_COUNT_IT, "nobody knows what became of the job" },
};

bool relaunch_counts(enum cause cause, bool blame_run)
{
	return table[cause].verdict == VERDICT_COUNT_IT ||
	       (cause == CAUSE_LAUNCH_FAIL && blame_run);
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

static const char used_up[] = "too many launches without progress (restart.max_without_progress)";

static struct relaunch relaunch_counted(const struct relaunch_facts *f,
					const struct policy *policy, const char *text)
{
	if (f->is_final)
		return (struct relaunch){ RUN_FAILED, 0, "a relaunch would meet the same" };
	if (f->exit_code >= 0 && never_again(policy, f->exit_code))
		return (struct relaunch){ RUN_FAILED, 0,
			"the exit status is listed in restart.never_on_exit_codes" };
	if (f->cause == CAUSE_LAUNCH_FAIL && !f->ever_trained)
		return (struct relaunch){ RUN_FAILED, 0, "it cannot be started" };
	if (f->failures >= policy->max_without_progress)
		return (struct relaunch){ RUN_FAILED, 0, used_up };
	return (struct relaunch){ RUN_BACKOFF, pause_ms(policy, f->failures), text };
}

struct relaunch relaunch_decide(const struct relaunch_facts *f, const struct policy *policy)
{
	const char *text = table[f->cause].text;

	if (relaunch_counts(f->cause, f->blame_run))
		return relaunch_counted(f, policy, text);
	switch (table[f->cause].verdict) {
	case VERDICT_COMPLETE:
		return (struct relaunch){ RUN_COMPLETED, 0, text };
	case VERDICT_KILL:
		return (struct relaunch){ RUN_KILLED, 0, text };
	case VERDICT_AGAIN:
		/* its launches before this end may have used the budget up */
		if (f->failures > 0 && f->failures >= policy->max_without_progress)
			return (struct relaunch){ RUN_FAILED, 0, used_up };
		return (struct relaunch){ RUN_BACKOFF, pause_ms(policy, f->unstarted - 1), text };
	case VERDICT_FAIL:
	case VERDICT_COUNT_IT:
	default:
		return (struct relaunch){ RUN_FAILED, 0, text };
	}
}
