/* SPDX-License-Identifier: MIT */
/* plain_submit.c - a negative control, with plain_slurm.c: an lbd (controls/lbd) that submits as
 * most scripts do: its jobs are not held (plain_slurm.c), so their files are written before. What
 * it did not live to record it asks for again; nothing is searched for. */
#include "daemon/engine/decide/reconcile.h"
#include "daemon/job/job.h"

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

int __real_job_submit(const struct config *config, const struct run *run, double node_mtbf_s,
		      const char *ledger_id, scheduler_done done, void *arg, struct err *err);
int __wrap_job_submit(const struct config *config, const struct run *run, double node_mtbf_s,
		      const char *ledger_id, scheduler_done done, void *arg, struct err *err);

int __wrap_job_submit(const struct config *config, const struct run *run, double node_mtbf_s,
		      const char *ledger_id, scheduler_done done, void *arg, struct err *err)
{
	if (job_write(config, run, node_mtbf_s, err) < 0)
		return -1;
	return __real_job_submit(config, run, node_mtbf_s, ledger_id, done, arg, err);
}
