/* SPDX-License-Identifier: MIT */
/* kept_env.h - the part of this process's environment that a run is given along. */
#ifndef COMMON_CONFIG_KEPT_ENV_H
#define COMMON_CONFIG_KEPT_ENV_H

#include <jansson.h>

/* {NAME: value}, a new reference. */
json_t *kept_environment(void);
/* The umask that a job is to have, as SLURM_UMASK tells it; owned by the caller. */
char *kept_umask(void);

#endif
