/* SPDX-License-Identifier: MIT */
/* oom.h - did the kernel kill something of this job for want of memory? */
#ifndef LBRUN_WATCH_OOM_H
#define LBRUN_WATCH_OOM_H

#include <stdint.h>

/* How often so far, in our own control group (v2, else v1); -1 = cannot be told. `proc_cgroup` is
 * /proc/self/cgroup, `mount` /sys/fs/cgroup; tests give their own. */
int64_t oom_kills(const char *proc_cgroup, const char *mount);

/* What the job may take on this node, in MB, from the values of SLURM_MEM_PER_NODE,
 * SLURM_MEM_PER_CPU and SLURM_CPUS_ON_NODE, each of which may be NULL; 0 = it cannot be told. */
int64_t oom_limit_mb(const char *per_node, const char *per_cpu, const char *cpus);

#endif
