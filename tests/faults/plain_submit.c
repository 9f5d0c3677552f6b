/* SPDX-License-Identifier: MIT */
/* plain_submit.c - a negative control, with plain_slurm.c: an lbd (controls/lbd) that submits as
 * most scripts do. What it did not live to record it asks for again; nothing is searched for. */
#include "daemon/engine/decide/reconcile.h"

struct decision __real_reconcile(const struct facts *f, const struct policy *policy,
				 int64_t now_ms);
struct decision __wrap_reconcile(const struct facts *f, const struct policy *policy,
				 int64_t now_ms);

struct decision __wrap_reconcile(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	bool is_unsure = f->has_attempt && f->a->state == ATTEMPT_INTENT && !f->a->fresh;

	if (is_unsure)
		return (struct decision){ .kind = DECISION_END,
					  .cause = CAUSE_LAUNCH_FAIL,
					  .exit_code = -1,
					  .text = "nothing is known of it" };
	return __real_reconcile(f, policy, now_ms);
}
