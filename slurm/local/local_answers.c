/* SPDX-License-Identifier: MIT */
/* local_answers.c - answers of the local scheduler: calls never call back from inside. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "slurm/local/local_state.h"

static void answer_poll(struct local *l, const struct later *a)
{
	struct scheduler_reply reply = { .result = a->result, .text = a->text };
	struct local_job **jobs;
	struct job_status *list;
	size_t count, n;

	local_look_after(l);
	local_jobs_forget(&l->jobs);
	jobs = local_jobs_sorted(&l->jobs, &count);
	list = xcalloc(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i += n) {
		n = local_jobs_together(jobs + i, count - i);
		local_jobs_fold(jobs + i, n, &list[reply.job_count++]);
	}
	reply.jobs = list;
	a->done(a->arg, &reply);
	free(list);
	free(jobs);
}

/* Answers what is due now; what the callbacks ask for comes in the next turn of the loop. */
static void on_due(uv_timer_t *timer)
{
	struct local *l = timer->data;
	struct later *a, *due = l->due;

	l->due = NULL;
	l->due_end = &l->due;
	while ((a = due)) {
		struct scheduler_reply reply = {
			.result = a->result, .text = a->text, .job = a->job, .body = a->body
		};
		bool is_dropped = uv_is_closing((uv_handle_t *)timer);

		due = a->next;
		if (!is_dropped && a->is_poll && a->result == SCHEDULER_OK)
			answer_poll(l, a);
		else if (!is_dropped)
			a->done(a->arg, &reply);
		json_decref(a->body);
		free(a);
	}
}

struct later *local_answer(struct local *l, scheduler_done done, void *arg,
			   const struct job_ref *job)
{
	struct later *a = xcalloc(1, sizeof(*a));

	a->done = done;
	a->arg = arg;
	if (job)
		a->job = *job;
	if (l->broken.code) {
		a->result = SCHEDULER_DOWN;
		snprintf(a->text, sizeof(a->text), "%s", l->broken.text);
	}
	*l->due_end = a;
	l->due_end = &a->next;
	uv_timer_start(&l->timer, on_due, 0, 0);
	return a;
}

void local_answer_is(struct later *a, enum scheduler_result result, const char *text)
{
	a->result = result;
	snprintf(a->text, sizeof(a->text), "%s", text);
}

bool local_is_live(struct local *l, const struct job_ref *ref, struct later *a)
{
	bool is_known = false;

	if (a->result != SCHEDULER_OK)
		return false;
	if (local_next_live(l, ref, NULL))
		return true;
	for (const struct local_job *job = l->jobs.first; job; job = job->next)
		is_known = is_known || local_job_is(job, ref);
	local_answer_is(a, SCHEDULER_GONE, is_known ? "the job has ended" : "no such local job");
	return false;
}
