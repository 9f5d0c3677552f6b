/* SPDX-License-Identifier: MIT */
/* local_env.c - lays what a job must find over what its request brought. */
#include "slurm/local/local_env.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/config/run_spec.h"
#include "common/base/strv.h"

static void take_number(struct strv *env, const char *name, int64_t number)
{
	if (number > 0)
		strv_set(env, xasprintf("%s=%" PRId64, name, number));
}

static int take_secrets(struct strv *env, const struct local_job *job, struct err *err)
{
	char **secrets;

	if (!job->env_file)
		return 0;
	secrets = env_file_read(job->env_file, job->env_uid, err);
	if (!secrets)
		return -1;
	for (char **s = secrets; *s; s++)
		strv_set(env, xstrdup(*s));
	strv_free(secrets);
	return 0;
}

static void take_slots(struct strv *env, const struct local_job *job)
{
	char *gpus = gpus_text(job->gpus);

	strv_set(env, xasprintf("CUDA_VISIBLE_DEVICES=%s", gpus));
	strv_set(env, xstrdup("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
	free(gpus);
	take_number(env, "SLURM_GPUS_ON_NODE", job->wants.gpus);
	take_number(env, "SLURM_CPUS_PER_TASK", job->wants.cpus);
	take_number(env, "SLURM_CPUS_ON_NODE", job->wants.cpus);
	take_number(env, "SLURM_MEM_PER_NODE", job->wants.mem_mb);
}

/* Index 0 is one, too. */
static void take_task(struct strv *env, const struct local_task *task)
{
	const struct {
		const char *name;
		int64_t number;
	} all[] = {
		{ "JOB_ID", task->array_id },  { "TASK_ID", task->index },
		{ "TASK_COUNT", task->count }, { "TASK_MIN", task->lowest },
		{ "TASK_MAX", task->highest }, { "TASK_STEP", task->step },
	};

	for (size_t i = 0; task->array_id && i < sizeof(all) / sizeof(all[0]); i++)
		strv_set(env, xasprintf("SLURM_ARRAY_%s=%" PRId64, all[i].name, all[i].number));
}

void local_env_mark(const struct local_job *job, char out[LOCAL_MARK_BYTES])
{
	const struct local_task *task = &job->task;
	int len = snprintf(out, LOCAL_MARK_BYTES, "LB_JOB_TOKEN=%s", job->status.ref.token);

	if (task->array_id)
		snprintf(out + len, LOCAL_MARK_BYTES - (size_t)len, "_%" PRId64, task->index);
}

/* Who submits a script may sit in a job, of Slurm or of ours, and all of his environment came: this
 * one is not there. SLURM_JOB_NAME and others are sbatch's words for the script. */
static bool is_of_allocation(const char *setting)
{
	static const char *const begins[] = {
		"SLURM_JOB_ID=",        "SLURM_JOBID=",        "SLURM_JOB_NODELIST=",
		"SLURM_JOB_NUM_NODES=", "SLURM_JOB_CPUS_PER_", "SLURM_JOB_GPUS=",
		"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME",  "SLURM_NODE",
		"SLURM_NNODES=",        "SLURM_TASK",          "SLURM_STEP",
		"SLURM_PROCID=",        "SLURM_LOCALID=",      "SLURM_ARRAY_",
		"SLURM_CPUS_ON_NODE=",  "SLURM_GPUS_ON_NODE=", "SLURMD_",
		"LB_JOB_END_TIME=",
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (text_begins_with(setting, begins[i]))
			return true;
	return false;
}

char **local_env_make(const struct local_job *job, struct err *err)
{
	char mark[LOCAL_MARK_BYTES];
	struct strv env = { 0 };

	local_env_mark(job, mark);
	strv_set(&env, xstrdup(mark));
	for (char **e = job->env; e && *e; e++)
		if (!is_of_allocation(*e))
			strv_set(&env, xstrdup(*e));
	if (take_secrets(&env, job, err)) {
		strv_free(env.items);
		return NULL;
	}
	strv_set(&env, xstrdup(mark));
	strv_set(&env, xasprintf("LB_LOCK_FD=%d", LOCAL_LOCK_FD));
	strv_set(&env, xasprintf("LB_JOB_ID=%u", job->status.ref.job_id));
	take_number(&env, "LB_JOB_END_TIME",
		    job->time_seconds > 0 ? clock_wall_ms() / 1000 + job->time_seconds : 0);
	take_slots(&env, job);
	take_task(&env, &job->task);
	return env.items;
}
