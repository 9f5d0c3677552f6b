/* SPDX-License-Identifier: MIT */
/* cpus.c - one CPU of each core, by the lists of siblings that the kernel gives. */
#include "kernels/machine/cpus.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static cpu_set_t allowed;
static int core_cpu[CPU_SETSIZE]; /* one CPU of each core */
static unsigned cores;
static bool is_known;

/* The lowest CPU of the core that `cpu` belongs to; `cpu` itself where the kernel does not say. */
static int first_sibling(int cpu)
{
	char path[96], line[32] = "", *end = line;
	long first = cpu;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);
	FILE *file = fopen(path, "re");
	if (!file)
		return cpu;
	if (fgets(line, sizeof(line), file))
		first = strtol(line, &end, 10);
	fclose(file);
	return end != line && first >= 0 && first < CPU_SETSIZE ? (int)first : cpu;
}

static void look(void)
{
	cpu_set_t seen;

	CPU_ZERO(&seen);
	is_known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
	for (int cpu = 0; is_known && cpu < CPU_SETSIZE; cpu++) {
		int core = CPU_ISSET(cpu, &allowed) ? first_sibling(cpu) : -1;
		if (core < 0 || CPU_ISSET(core, &seen))
			continue;
		CPU_SET(core, &seen);
		core_cpu[cores++] = cpu;
	}
}

static void look_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look);
}

unsigned cpus_cores(void)
{
	look_once();
	return cores > 0 ? cores : 1;
}

bool cpus_bind(unsigned index)
{
	cpu_set_t one;

	look_once();
	if (index >= cores)
		return false;
	CPU_ZERO(&one);
	CPU_SET(core_cpu[index], &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

void cpus_unbind(void)
{
	look_once();
	if (is_known)
		(void)sched_setaffinity(0, sizeof(allowed), &allowed);
}
