/* SPDX-License-Identifier: MIT */
/* allocation.h - which of the job's nodes the next launch runs on, where some are spares
 * (restart.spare_nodes): the first of them, as many as the run asked for. */
#ifndef LBRUN_TRAINER_ALLOCATION_H
#define LBRUN_TRAINER_ALLOCATION_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <sys/types.h>

#include "common/base/err.h"

struct allocation {
	/* all, in Slurm's order, the batch script's first; owned; NULL = there are no spares */
	json_t *nodes;
	size_t used; /* by a launch */
};

/* From then on SLURM_* in the environment of this process, and of all that it starts, tell of the
 * nodes that a launch runs on, and of no others. */
void allocation_open(struct allocation *a, int64_t spares);
void allocation_close(struct allocation *a);
/* Gives the node back to Slurm: steps on it end for Slurm's part, and a spare takes its place.
 * Takes seconds at most; scontrol leaves files in `folder`, which are removed. -1 with err: no
 * spare is left, it is the batch script's own node, or Slurm refuses. */
int allocation_drop(struct allocation *a, const char *node, const char *folder, struct err *err);
/* Starts this program with that option and argument once on each of them, `nodes` in all, beside
 * the trainer's steps. What it says goes to `out`; -1 = nowhere. The pid of srun, or -1. */
pid_t allocation_start(int64_t nodes, const char *option, const char *arg, int out);
/* "n1,n3": those of a launch, for srun, which knows all of the job's; NULL = there are no
 * spares. */
const char *allocation_nodelist(void);

#endif
