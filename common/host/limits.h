/* SPDX-License-Identifier: MIT */
/* limits.h - what the submitter's shell sets limits to (ulimit), on its way to a job, in the
 * variables of sbatch's. */
#ifndef COMMON_HOST_LIMITS_H
#define COMMON_HOST_LIMITS_H

#include <jansson.h>

#define LIMIT_VARIABLES "SLURM_RLIMIT_"

/* Those of this process, into an environment as lbctl sends it. */
void limits_tell(json_t *env);
/* This process has those, and the umask, that an environment names, as far as it may. */
void limits_take(char *const *env);

#endif
