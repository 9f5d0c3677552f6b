/* SPDX-License-Identifier: MIT */
/* backends.h - the two real schedulers. Each is created once per lbd and owned by it. */
#ifndef SLURM_BACKENDS_H
#define SLURM_BACKENDS_H

#include <stdbool.h>
#include <uv.h>

#include "slurm/helper_process.h"
#include "slurm/scheduler.h"

/* Talks to Slurm through the helper process at `helper_path` (lbd-slurm), which is started on first
 * use, given `deadline_ms` for every call, and killed and respawned when it exceeds it: libslurm
 * can block for ever (frozen munge) and may exit the process. `by_sbatch`: jobs are submitted by
 * the site's sbatch. */
struct scheduler *scheduler_slurm_create(uv_loop_t *loop, const char *helper_path,
					 int64_t deadline_ms, bool by_sbatch);

/* `find` is asked for another helper when this one does not fit any more: Slurm may be exchanged
 * while lbd runs. */
void scheduler_slurm_on_doubt(struct scheduler *slurm, helper_find find, void *arg);

/* What jobs on this machine may have, [local] of lbd.toml. */
struct local_limits {
	int64_t gpus;           /* -1: all that are found */
	const int64_t *gpu_ids; /* which ones; borrowed during the call */
	size_t gpu_id_count;    /* 0: not said */
	int64_t cpus, mem_mb;   /* 0: all */
	int64_t jobs;           /* at once; 0: any number */
};

/* Runs job scripts on this machine as detached sessions that outlive lbd, in the order of their
 * numbers and as GPUs, CPUs and memory allow (slots.h). All jobs, waiting ones too, are remembered
 * in `folder` ($LB_HOME/local), so that a restarted lbd finds them again; secrets are not: they are
 * read when a job starts. The first cancel is a SIGQUIT to lbrun, the second kills all that can be
 * found of the job. What a job gets in its environment is told in local_env.h. */
struct scheduler *scheduler_local_create(uv_loop_t *loop, const char *folder,
					 const struct local_limits *limits);

#endif
