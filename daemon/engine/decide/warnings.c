/* SPDX-License-Identifier: MIT */
/* warnings.c - the sums and the words of each warning. */
#include "daemon/engine/decide/warnings.h"

#include <stdio.h>

void pace_note(struct pace *p, int64_t launch, int64_t step, int64_t time_ms)
{
	if (launch == p->launch && step == p->last_step)
		return; /* another rank tells more of it */
	if (launch != p->launch || step < p->last_step)
		*p = (struct pace){ launch, step, time_ms, step, time_ms };
	p->last_step = step;
	p->last_ms = time_ms;
}

int64_t pace_left_ms(const struct pace *p, int64_t target_step, int64_t limit_ms)
{
	int64_t steps = p->last_step - p->first_step, ms = p->last_ms - p->first_ms;

	if (steps < PACE_MIN_STEPS || ms <= 0 || ms < limit_ms / PACE_SHARE)
		return -1;
	if (target_step <= p->last_step)
		return 0;
	return (int64_t)((double)(target_step - p->last_step) * (double)ms / (double)steps);
}

void absence_explain(const struct absence *a, char *out, size_t size)
{
	const struct job_status *job = a->seen;

	if (a->down[0])
		snprintf(out, size, "the scheduler does not answer: %s", a->down);
	else if (a->state == RUN_BACKOFF)
		snprintf(out, size, "it waits before its next attempt; last: %s",
			 a->last_end[0] ? a->last_end : "nothing is known");
	else if (job && job->phase == JOB_HELD)
		snprintf(out, size, "somebody holds its job %u (%s)", job->ref.job_id, job->reason);
	else if (job)
		snprintf(out, size, "its job %u is %s: %s", job->ref.job_id, job->state,
			 job->reason[0] ? job->reason : "no reason is given");
	else if (a->refused[0])
		snprintf(out, size, "it cannot be submitted: %s", a->refused);
	else
		snprintf(out, size, "the scheduler does not show a job of it");
}
