/* SPDX-License-Identifier: MIT */
/* machine.h - what this machine has to give to jobs: found, or said in lbd.toml. */
#ifndef SLURM_LOCAL_MACHINE_H
#define SLURM_LOCAL_MACHINE_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "slurm/backends.h"
#include "slurm/local/slots.h"

/* The kernel tells its CPUs in a mask of as many as it could have, which is more than CPU_SETSIZE
 * on some machines; jobs are given the first ones. */
enum { MACHINE_MAX_GPUS = 64, MACHINE_CPU_SETS = 8 };

struct machine {
	uint64_t gpus; /* bit i: the GPU with number i */
	cpu_set_t cpus;
	int64_t mem_mb, jobs; /* jobs: 0 = any number */
};

/* GPUs are counted by NVML (libnvidia-ml.so.1, opened for this moment only; where there is none,
 * there are none); CPUs are those that lbd itself may use; memory is the machine's. `limits` says
 * otherwise where it says something. */
void machine_find(struct machine *m, const struct local_limits *limits);
struct slots machine_slots(const struct machine *m);

/* The `count` lowest of what is in `all` and not in `taken`. */
uint64_t gpus_pick(uint64_t all, uint64_t taken, int64_t count);
void cpus_pick(const cpu_set_t *all, const cpu_set_t *taken, int64_t count, cpu_set_t *out);

/* "0,2,3", as CUDA_VISIBLE_DEVICES and records write them; owned by the caller. Numbers that are
 * none or too large are passed over when such a list is read. */
char *gpus_text(uint64_t gpus);
uint64_t gpus_parse(const char *text);
char *cpus_text(const cpu_set_t *cpus);
void cpus_parse(const char *text, cpu_set_t *out);

#endif
