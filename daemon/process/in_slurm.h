/* SPDX-License-Identifier: MIT */
/* in_slurm.h - where login nodes bear no daemons: lbd in a small job that queues its successor.
 *
 * The job's name is the chain: Slurm runs one job of a name and user at a time (singleton), so the
 * next one waits until this one has ended, however it ends. */
#ifndef DAEMON_PROCESS_IN_SLURM_H
#define DAEMON_PROCESS_IN_SLURM_H

#include <stdio.h>

#include "daemon/base/config.h"

/* The batch script, complete with its #SBATCH lines. */
int in_slurm_print(const struct config *config, FILE *to, struct err *err);

#endif
