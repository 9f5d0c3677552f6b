/* SPDX-License-Identifier: MIT */
/* slurm_command.h - Slurm's own commands, for seconds at most: who waits hears nothing else. */
#ifndef LBRUN_TRAINER_SLURM_COMMAND_H
#define LBRUN_TRAINER_SLURM_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* Runs it in `folder`, silently. Its exit status; -1 = it took too long, and was ended. */
int slurm_command(const char *const *argv, const char *folder);
/* The same anywhere, and nobody waits. */
void slurm_command_start(const char *const *argv);
/* What it printed; "" where it failed. Owned by the caller. */
char *slurm_command_output(const char *const *argv, const char *folder);
/* The job that we are in, for squeue and scancel: of an array this task alone, for one of them has
 * the number that means all. Owned by the caller; NULL: none of Slurm's. */
char *slurm_this_job(void);
/* Does it end for another job? The steps are asked to at once, the batch script by the end of the
 * partition's GraceTime. */
bool slurm_is_preempted(const char *folder);
/* Does Slurm end it for its time limit? Its SIGKILL is near then: false also where it is slow to
 * say so. */
bool slurm_is_at_limit(const char *folder);
/* Until its time limit; -1 = there is none, or Slurm does not say. */
int64_t slurm_time_left_ms(const char *folder);

#endif
