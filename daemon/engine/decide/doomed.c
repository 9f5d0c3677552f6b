/* SPDX-License-Identifier: MIT */
/* doomed.c - what the scheduler says of such a job, what it no longer says, and what is made of
 * it. */
#include "daemon/engine/decide/doomed.h"

#include <string.h>

#include "common/base/text.h"
#include "daemon/engine/decide/attempt_end.h"
#include "daemon/engine/decide/decision.h"

static const char doomed[] = "what it depends on failed: DependencyNeverSatisfied";
static const char maybe_doomed[] =
	"its job was to wait for another (--dependency), and is gone without having "
	"begun: perhaps the other failed, so it is not run; if it is to run all the "
	"same: lbctl restart";

bool is_never_to_start(const struct facts *f)
{
	/* of an array others have begun; one job may have begun since that was said of it */
	bool is_old = f->a->claimed && f->poll_ms <= f->a->claim_seen_ms;

	return f->seen && !is_old && f->seen->phase != JOB_RUNNING &&
	       strcmp(f->seen->reason, "DependencyNeverSatisfied") == 0;
}

bool ended_for_good(const char *end_text)
{
	return strcmp(end_text, doomed) == 0 || strcmp(end_text, maybe_doomed) == 0;
}

static struct decision end_never_to_start(const char *why)
{
	struct decision d = attempt_end(CAUSE_LAUNCH_FAIL, why);

	d.is_final = true;
	d.blame_run = true;
	return d;
}

struct decision end_doomed(void)
{
	return end_never_to_start(doomed);
}

bool may_be_doomed(const struct facts *f)
{
	const char *reason = f->a->seen_poll_ms > 0 ? f->a->last_seen.reason : "";
	bool waited_for_others = text_begins_with(reason, "Dependency");

	if (!f->depends || f->a->claimed || f->ever_trained)
		return false;
	if (f->a->fresh && !f->a->was_waiting)
		return false;
	return reason[0] == '\0' || waited_for_others;
}

struct decision end_maybe_doomed(const struct facts *f)
{
	bool is_known = f->a->recalled.cause != CAUSE_NONE &&
			f->a->recalled.cause != CAUSE_KILLED &&
			f->a->recalled.cause != CAUSE_LAUNCH_FAIL;
	bool is_users = f->a->recalled.cause == CAUSE_KILLED && f->a->recalled.has_canceller &&
			f->a->recalled.canceller != 0 && f->a->recalled.canceller != f->node_uid;

	if (f->may_recall && f->a->recall.state == CALL_NONE)
		return decide(DECISION_RECALL, f);
	if (f->a->recall.state == CALL_OPEN)
		return wait_for_news();
	return is_known || is_users ? end_by_accounting(f) : end_never_to_start(maybe_doomed);
}
