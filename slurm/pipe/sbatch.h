/* SPDX-License-Identifier: MIT */
/* sbatch.h - a job by the site's own sbatch. */
#ifndef SLURM_PIPE_SBATCH_H
#define SLURM_PIPE_SBATCH_H

#include <jansson.h>
#include <stdint.h>

#include "slurm/pipe/answer.h"

/* In a federation the cluster that we are in; "": there is none. */
const char *sbatch_own_cluster(void);

/* Submits the request, held. 0 with the job's number, or -1. */
int sbatch_submit(const json_t *request, struct answer *a, uint32_t *job_id);

/* Would sbatch take the request? 0, or -1 with its words: SCHEDULER_REFUSED if it says no. */
int sbatch_test(const json_t *request, struct answer *a);

/* When it would start with these options besides, by --test-only: seconds since the epoch; 0:
 * never, or it was not told. */
int64_t sbatch_plan(const json_t *request, const char *const *more);

#endif
