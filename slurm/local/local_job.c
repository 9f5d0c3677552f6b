/* SPDX-License-Identifier: MIT */
/* local_job.c - one job of the local scheduler, and the phases of its life. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "slurm/local/local_jobs.h"

static const char *own_host(void)
{
	static char name[HOST_NAME_MAX + 1];

	if (!name[0])
		gethostname(name, sizeof(name) - 1);
	return name;
}

struct local_job *local_job_create(const char *token, const char *ledger_id, uint32_t job_id)
{
	struct local_job *job = xcalloc(1, sizeof(*job));
	struct job_status *st = &job->status;

	snprintf(st->ref.token, sizeof(st->ref.token), "%s", token);
	snprintf(st->ledger_id, sizeof(st->ledger_id), "%s", ledger_id);
	st->ref.job_id = job_id;
	st->exit_code = -1;
	st->nodes = own_host();
	local_job_hold(job);
	return job;
}

void local_job_free(struct local_job *job)
{
	strv_free(job->env);
	free(job->env_file);
	free(job->script_path);
	free(job->workdir);
	free(job->output);
	free(job);
}

bool local_job_is(const struct local_job *job, const struct job_ref *ref)
{
	const struct job_ref *own = &job->status.ref;
	uint32_t known_as = job->task.array_id ? job->task.array_id : own->job_id;

	return known_as == ref->job_id && own->submit_time == ref->submit_time &&
	       strcmp(own->token, ref->token) == 0;
}

/* --- phases -------------------------------------------------------------------------------- */
static void drop_env(struct local_job *job)
{
	strv_free(job->env);
	job->env = NULL;
}

static void set_phase(struct local_job *job, enum job_phase phase, const char *word)
{
	job->status.phase = phase;
	snprintf(job->status.state, sizeof(job->status.state), "%s", word);
}

void local_job_hold(struct local_job *job)
{
	set_phase(job, JOB_HELD, "HELD");
	snprintf(job->status.reason, sizeof(job->status.reason), "JobHeldUser");
}

void local_job_wait(struct local_job *job)
{
	set_phase(job, JOB_PENDING, "PENDING");
	snprintf(job->status.reason, sizeof(job->status.reason), "Priority");
}

void local_job_run(struct local_job *job)
{
	set_phase(job, JOB_RUNNING, "RUNNING");
	job->status.reason[0] = '\0';
	job->status.start_time = clock_wall_ms() / 1000;
	job->began_ms = clock_mono_ms();
	drop_env(job);
}

void local_job_ending(struct local_job *job, enum cause cause, int exit_code, int signal)
{
	set_phase(job, JOB_ENDING, "COMPLETING");
	job->status.cause = job->is_cancelled   ? CAUSE_KILLED
			    : job->is_timed_out ? CAUSE_TIMEOUT
						: cause;
	job->status.exit_code = exit_code;
	job->status.signal = signal;
	job->status.end_time = clock_wall_ms() / 1000;
	job->status.reason[0] = '\0';
	job->is_child = false;
	job->ending_since_ms = clock_mono_ms();
	drop_env(job);
}

void local_job_ended(struct local_job *job)
{
	set_phase(job, JOB_ENDED, "ENDED");
	job->gpus = 0;
	CPU_ZERO(&job->cpus);
}

bool local_job_holds(const struct local_job *job)
{
	return job->status.phase == JOB_RUNNING || job->status.phase == JOB_ENDING;
}
