/* SPDX-License-Identifier: MIT */
/* local_env.h - the environment of a job on this machine: what the request brought, the secrets of
 * its private file, and
 *
 *   LB_JOB_ID, LB_JOB_TOKEN, LB_LOCK_FD     for lbrun; the token marks every descendant
 *   CUDA_VISIBLE_DEVICES                    the GPUs that it was given, by their place on the bus
 *   CUDA_DEVICE_ORDER=PCI_BUS_ID            … which this makes CUDA count by; empty: none
 *   SLURM_GPUS_ON_NODE, SLURM_CPUS_PER_TASK, SLURM_CPUS_ON_NODE, SLURM_MEM_PER_NODE where asked
 *   for, SLURM_ARRAY_JOB_ID, SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _MAX, _STEP in the tasks of an
 *   array, as job scripts read them
 *
 * and no SLURM_JOB_ID or SLURM_NTASKS: trainers would take the machine for a cluster. */
#ifndef SLURM_LOCAL_LOCAL_ENV_H
#define SLURM_LOCAL_LOCAL_ENV_H

#include "slurm/local/local_jobs.h"

/* NULL-terminated; free it with strv_free, which wipes it. NULL with err when the private file
 * cannot be read. */
char **local_env_make(const struct local_job *job, struct err *err);

/* "LB_JOB_TOKEN=TOKEN", as in the environment of every process of the job; of a task
 * "…=TOKEN_INDEX", so that its end is not its siblings'. */
enum { LOCAL_MARK_BYTES = TOKEN_HEX + 48 };
void local_env_mark(const struct local_job *job, char out[LOCAL_MARK_BYTES]);

#endif
