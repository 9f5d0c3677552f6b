/* SPDX-License-Identifier: MIT */
/* closed.h - a partition, or a cluster, that takes no jobs for now. */
#ifndef SLURM_PIPE_CLOSED_H
#define SLURM_PIPE_CLOSED_H

#include "slurm/pipe/answer.h"

/* Administrators close a partition for new jobs (inactive or drain) before they work on it. Whoever
 * submits is told so, when the job is checked; a run that goes on is asked for until it is open
 * again: such a no to a submission becomes "not now". */
void closed_wait(struct answer *a);

#endif
