/* SPDX-License-Identifier: MIT */
/* machine/ - the CPUs of this machine: how many, what they understand, how fast they are.
 *
 * cpus.h - the CPUs we may run on, as cores, and threads that stay on one of them.
 *
 * What we may run on is the mask at the first call of any of these: Slurm, taskset and containers
 * narrow it. Two hardware threads of one core are one core: they share the units that multiply. */
#ifndef KERNELS_MACHINE_CPUS_H
#define KERNELS_MACHINE_CPUS_H

#include <stdbool.h>

unsigned cpus_cores(void); /* at least 1 */
/* As many of them as the time is for that our control group is given: a container may see all CPUs
 * and have a quota (docker --cpus, Kubernetes). At least 1. */
unsigned cpus_granted(void);
/* The calling thread may run on all of them: threads inherit what their parent was bound to. */
void cpus_unbind(void);
/* Keeps the calling thread on core `index`; false: there is none, or it is not ours any more, and
 * the thread may run on all of them. */
bool cpus_bind(unsigned index);

#endif
