/* SPDX-License-Identifier: MIT */
/* host/ - what this machine is, and what of it is ours.
 *
 * cgroup.h - what a container, or a slice of a login, has of it. */
#ifndef COMMON_HOST_CGROUP_H
#define COMMON_HOST_CGROUP_H

#include <stdint.h>

/* -1 = all that there is. */
int64_t cgroup_memory_bytes(void);
/* Whole ones, for a share of one counts as one. */
int64_t cgroup_cpus(void);

#endif
