/* SPDX-License-Identifier: MIT */
/* backends.h - the two real schedulers. Each is created once per lbd and owned by it. */
#ifndef SLURM_BACKENDS_H
#define SLURM_BACKENDS_H

#include <stdbool.h>
#include <uv.h>

#include "slurm/scheduler.h"

/* Talks to Slurm through the helper process at `helper_path` (lbd-slurm), which is started on first
 * use, given `deadline_ms` for every call, and killed and respawned when it exceeds it: libslurm can
 * block for ever (frozen munge) and may exit the process. */
struct scheduler *scheduler_slurm_create(uv_loop_t *loop, const char *helper_path,
					 int64_t deadline_ms);

/* Runs job scripts on this machine as detached sessions that outlive lbd; remembers them in
 * `folder` ($LB_HOME/local), so that a restarted lbd finds them again. A job that was held is gone
 * then: its environment is never written. CPUs, memory, GPUs and time of a request are not enforced.
 * The first cancel is a SIGQUIT to lbrun, the second kills all that can be found of the job. Jobs
 * get LB_JOB_ID and LB_LOCK_FD, a descriptor that lbrun keeps open and close-on-exec (local.c). */
struct scheduler *scheduler_local_create(uv_loop_t *loop, const char *folder);

/* Is a Slurm configuration to be found ($SLURM_CONF or /etc/slurm/slurm.conf), and the helper? */
bool scheduler_slurm_available(const char *helper_path);

#endif
