/* SPDX-License-Identifier: MIT */
/* prequeue.c - one rule after the other, the first that applies decides. */
#include "daemon/engine/decide/prequeue.h"

#include <stddef.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/attempt_end.h"
#include "daemon/engine/decide/decision.h"

static bool is_wanted(const struct facts *run, const struct policy *policy)
{
	return policy->prequeue && run->wanted == ORDER_RUN && !run_state_is_final(run->state);
}

/* Only behind a job that really runs, and not while the run is to be sent back to an older
 * checkpoint: that is for its next launch only, wherever it happens. */
static bool is_worth_one(const struct facts *run)
{
	return run->state == RUN_RUNNING && run->a->state == ATTEMPT_RUNNING && !run->exited &&
	       !run->goes_back && run->seen && run->seen->phase == JOB_RUNNING;
}

/* Somebody released it: it would start beside the attempt that runs. */
static struct decision stop_it(const struct facts *prequeued, int64_t now_ms)
{
	const struct call *c = &prequeued->a->cancel;

	if (c->state == CALL_OPEN)
		return wait_for_news();
	if (c->state != CALL_NONE && now_ms < c->reply_ms + RECHECK_MS)
		return wait_until(c->reply_ms + RECHECK_MS);
	return decide(DECISION_CANCEL, prequeued);
}

static struct decision held(const struct facts *prequeued, int64_t now_ms)
{
	if (prequeued->seen == NULL)
		return prequeued->poll_ms > prequeued->a->watching_since_ms + SETTLE_MS
			       ? attempt_end(CAUSE_LAUNCH_FAIL, "the scheduler lost it")
			       : wait_for_news();
	if (prequeued->seen->phase >= JOB_ENDING)
		return attempt_end(CAUSE_LAUNCH_FAIL, "somebody cancelled it");
	if (prequeued->seen->phase != JOB_HELD)
		return stop_it(prequeued, now_ms);
	return wait_for_news();
}

bool prequeue_is_worth(int prequeue, bool has_one, bool ages_held, int64_t longest_wait_ms)
{
	if (prequeue != SPEC_PREQUEUE_AUTO)
		return prequeue == SPEC_PREQUEUE_ALWAYS;
	return has_one || (ages_held && longest_wait_ms >= PREQUEUE_WORTH_MS);
}

struct decision prequeue(const struct facts *run, const struct facts *prequeued,
			 int64_t not_before_ms, const struct policy *policy, int64_t now_ms)
{
	if (prequeued && !is_wanted(run, policy))
		return attempt_end(CAUSE_KILLED, "the run does not go on");
	if (prequeued)
		return prequeued->a->state == ATTEMPT_INTENT ? reconcile(prequeued, policy, now_ms)
							     : held(prequeued, now_ms);
	if (!is_wanted(run, policy) || !is_worth_one(run))
		return wait_for_news();
	return now_ms < not_before_ms ? wait_until(not_before_ms)
				      : decide(DECISION_NEW_ATTEMPT, run);
}
