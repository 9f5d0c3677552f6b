/* SPDX-License-Identifier: MIT */
/* local_start.h - starts the first process of a job on this machine, and tells how it ends.
 *
 * It is a session of its own, bound to the job's CPUs, and holds the job's lock for as long as it
 * lives: it outlives lbd. */
#ifndef SLURM_LOCAL_LOCAL_START_H
#define SLURM_LOCAL_LOCAL_START_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/err.h"
#include "slurm/local/local_jobs.h"

struct child;

struct local_children {
	uv_loop_t *loop;
	/* from the loop; `status` as wait(2) has it */
	void (*on_exit)(void *arg, uint32_t job_id, int status);
	void (*on_gone)(void *arg); /* once for each child: nothing of it is left in lbd */
	void *arg;
	struct child *first; /* all zero at the start; each is freed before its on_gone */
};

/* *is_child: on_gone will come, also where -1 is returned. */
int local_start(struct local_children *children, const struct local_jobs *jobs,
		struct local_job *job, char **env, bool *is_child, struct err *err);
/* Their ends are not told any more; the processes go on. */
void local_children_let_go(struct local_children *children);

#endif
