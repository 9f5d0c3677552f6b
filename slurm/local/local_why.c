/* SPDX-License-Identifier: MIT */
/* local_why.c - why a local job waits, and what would start sooner. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "slurm/local/local_state.h"

/* With as much as is free of what it lacks, if it would start so. */
static void add_smaller(const struct local *l, const struct slot_job *plan, size_t n, size_t at,
			json_t *sooner)
{
	const struct slot_job *job = &plan[at];
	struct slots all = machine_slots(&l->machine), less = job->wants;
	const char *what = job->verdict == SLOT_NO_GPUS   ? "gpus"
			   : job->verdict == SLOT_NO_CPUS ? "cpus"
			   : job->verdict == SLOT_NO_MEM  ? "mem_mb"
							  : NULL;

	if (what == NULL || job->free <= 0)
		return;
	*(job->verdict == SLOT_NO_GPUS   ? &less.gpus
	  : job->verdict == SLOT_NO_CPUS ? &less.cpus
					 : &less.mem_mb) = job->free;
	if (slots_would_start(&all, plan, n, at, &less))
		json_array_append_new(sooner, json_pack("{s:I, s:I}", "start",
							(json_int_t)(clock_wall_ms() / 1000), what,
							(json_int_t)job->free));
}

/* When the last of those that run must be over by its time limit, if all have one: it starts by
 * then, unless others are ahead of it. 0: nobody knows. */
static int64_t all_over_by(struct local_job *const *jobs, size_t n)
{
	int64_t latest = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t end = jobs[i]->status.start_time + jobs[i]->time_seconds;

		if (!local_job_holds(jobs[i]))
			continue;
		if (jobs[i]->time_seconds <= 0)
			return 0;
		latest = end > latest ? end : latest;
	}
	return latest;
}

json_t *local_tell_why(const struct local *l, const struct job_ref *ref)
{
	struct local_job **jobs;
	struct slot_job *plan;
	size_t n = local_queue_plan(l, &jobs, &plan), at = 0, ahead = 0;
	json_t *o = NULL, *sooner = json_array();

	while (at < n && !(jobs[at]->status.phase == JOB_PENDING && local_job_is(jobs[at], ref)))
		ahead += jobs[at++]->status.phase == JOB_PENDING;
	if (at < n) {
		o = json_pack("{s:s, s:s, s:I}", "reason", jobs[at]->status.reason, "detail",
			      jobs[at]->status.reason, "ahead", (json_int_t)ahead);
		add_smaller(l, plan, n, at, sooner);
		json_object_set(o, "sooner", sooner);
		if (ahead == 0 && all_over_by(jobs, n) > 0)
			js_set_int(o, "start", all_over_by(jobs, n));
	}
	json_decref(sooner);
	free(jobs);
	free(plan);
	return o;
}
