/* SPDX-License-Identifier: MIT */
/* trainer_env.h - what a trainer is told by its environment is for its job alone. A job of Slurm
 * that it submits inherits all of it: sbatch's default is --export=ALL. */
#ifndef COMMON_RUN_TRAINER_ENV_H
#define COMMON_RUN_TRAINER_ENV_H

/* The job, beside SLURM_JOB_ID, which a job that inherits this has of its own. */
#define TRAINER_JOB_VARIABLE "LB_SLURM_JOB_ID"

/* Another job does not speak for this launch, nor does it meet its ranks, go on from where it began
 * or save among what it saves. It still knows whose it is: LB_RUN, LB_RUN_DIR. */
void trainer_env_forget(void);

/* The same, if this process is of another job. One whose SLURM_JOB_ID somebody took away, as
 * scripts do so that a library takes them for no job of Slurm, is not. */
void trainer_env_forget_inherited(void);

#endif
