/* SPDX-License-Identifier: MIT */
/* local_state.c - jobs of the local scheduler: their records, their first processes, their end by
 * force. */
#include "slurm/local/local_state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/procs.h"
#include "common/base/strv.h"
#include "slurm/local/local_env.h"

void local_unref(struct local *l)
{
	void (*closed)(void *arg) = l->closed;
	void *arg = l->closed_arg;

	if (--l->open_handles > 0)
		return;
	local_jobs_fini(&l->jobs);
	free(l);
	closed(arg);
}

void local_save(struct local *l, const struct local_job *job)
{
	struct err err = { 0 };

	if (local_job_save(&l->jobs, job, &err))
		log_warn("a local job's record is not up to date: %s", err.text);
}

void local_save_all_of(struct local *l, const struct job_ref *ref)
{
	struct err err = { 0 };

	if (local_jobs_save(&l->jobs, ref, &err))
		log_warn("a local job's record is not up to date: %s", err.text);
}

struct local_job *local_next_live(struct local *l, const struct job_ref *ref,
				  const struct local_job *job)
{
	struct local_job *at = job ? job->next : l->jobs.first;

	while (at && (at->status.phase == JOB_ENDED || !local_job_is(at, ref)))
		at = at->next;
	return at;
}

static int start(struct local *l, struct local_job *job, char **env, struct err *err)
{
	bool is_child = false;
	int rc = local_start(&l->children, &l->jobs, job, env, &is_child, err);

	l->open_handles += is_child;
	return rc;
}

/* Its end says most: "....../out.log: No space left on device". */
static void tell_trouble(struct local_job *job, const char *text)
{
	size_t size = sizeof(job->status.reason), len = strlen(text);

	if (len < size)
		snprintf(job->status.reason, size, "%.47s", text);
	else
		snprintf(job->status.reason, size, "...%.44s", text + len - 44);
	log_warn("a local job did not start: %s", text);
}

/* The record says "released" before anything starts: a crash in between leaves a job that may have
 * run, never one that may be started again. */
void local_start_job(struct local *l, struct local_job *job)
{
	struct err err = { 0 };
	char **env = local_env_make(job, &err);

	local_job_run(job);
	if (!env || local_job_save(&l->jobs, job, &err) || start(l, job, env, &err)) {
		local_job_ending(job, CAUSE_LAUNCH_FAIL, -1, 0);
		local_job_ended(job);
		tell_trouble(job, err.text);
	}
	strv_free(env);
	local_save(l, job);
}

size_t local_signal_marked(const struct local_job *job, int signo)
{
	char mark[LOCAL_MARK_BYTES];

	local_env_mark(job, mark);
	return procs_marked(mark, signo);
}

void local_kill(const struct local_job *job)
{
	proc_kill_family(&job->proc);
	local_signal_marked(job, SIGKILL);
}
