/* SPDX-License-Identifier: MIT */
/* job_env.h - the whole environment of a job: what a login gives, what lbctl saw in the submitter's
 * shell, and the secrets of run.env_file, the later over the earlier. */
#ifndef DAEMON_JOB_JOB_ENV_H
#define DAEMON_JOB_JOB_ENV_H

#include "common/base/err.h"
#include "common/base/strv.h"
#include "daemon/base/config.h"
#include "daemon/engine/run.h"

struct batch_job;

/* `env` is zeroed by the caller, who releases it in any case.
 *
 * Everything but the secrets. A batch script gets what sbatch would have given it, and nothing of
 * lbd's. */
int job_env_make(struct strv *env, const struct config *config, const struct run *run,
		 const struct batch_job *job, struct err *err);
/* The submitter's alone, as lbctl sent it. */
int job_env_submitter(struct strv *env, const struct run *run, struct err *err);
int job_env_add_secrets(struct strv *env, const struct run *run, struct err *err);

/* Is this the environment of a periodic job (LB_CRON is in it)? */
bool job_env_is_cron(char *const *env);

#endif
