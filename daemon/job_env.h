/* SPDX-License-Identifier: MIT */
/* job_env.h - the whole environment of a job: what a login gives, what lbctl saw in the submitter's
 * shell, and the secrets of run.env_file, the later over the earlier. */
#ifndef DAEMON_JOB_ENV_H
#define DAEMON_JOB_ENV_H

#include <stddef.h>

#include "common/err.h"
#include "daemon/run.h"

struct job_env {		/* zeroed by the caller; free it in any case */
	char **list;		/* NULL-terminated "NAME=value"; NULL = empty */
	size_t count;
};

/* Everything but the secrets. */
int job_env_make(struct job_env *env, const struct run *run, struct err *err);
int job_env_add_secrets(struct job_env *env, const struct run *run, struct err *err);
/* Wipes the values. */
void job_env_free(struct job_env *env);

#endif
