/* SPDX-License-Identifier: MIT */
/* job_env.h - the whole environment of a job: what a login gives, what lbctl saw in the submitter's
 * shell, and the secrets of run.env_file, the later over the earlier. */
#ifndef DAEMON_JOB_ENV_H
#define DAEMON_JOB_ENV_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "daemon/config.h"
#include "daemon/run.h"

struct job_env {		/* zeroed by the caller; free it in any case */
	char **list;		/* NULL-terminated "NAME=value"; NULL = empty */
	size_t count;
};

/* Everything but the secrets. `fields` is the job's (batch_job.h). A batch script gets what sbatch
 * would have given it, and nothing of lbd's. */
int job_env_make(struct job_env *env, const struct config *config, const struct run *run,
		 const json_t *fields, struct err *err);
/* The submitter's alone, as lbctl sent it. */
int job_env_submitter(struct job_env *env, const struct run *run, struct err *err);
/* Takes `entry` ("NAME=value"); a later one replaces an earlier one of the same name. */
void job_env_take(struct job_env *env, char *entry);
int job_env_add_secrets(struct job_env *env, const struct run *run, struct err *err);
/* Wipes the values. */
void job_env_free(struct job_env *env);

#endif
