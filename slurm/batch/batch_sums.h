/* SPDX-License-Identifier: MIT */
/* batch_sums.h - how many nodes, tasks and CPUs follow from the options that were given. */
#ifndef SLURM_BATCH_BATCH_SUMS_H
#define SLURM_BATCH_BATCH_SUMS_H

#include <jansson.h>

#include "common/base/err.h"

/* Completes fields in place: min_nodes, max_nodes, num_tasks, min_cpus, implied_tasks ... -1 with
 * err where sbatch refuses ("--nodelist: names 3 nodes, but --nodes allows 2"). */
int batch_sums(json_t *fields, struct err *err);

#endif
