/* SPDX-License-Identifier: MIT */
/* cpus.c - one CPU of each core, by the lists of siblings that the kernel gives. */
#include "kernels/machine/cpus.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/machine/group.h"

/* As many as Linux can be built for: it refuses a mask of fewer than the machine could have. */
enum { SETS = 8, CPUS = SETS * CPU_SETSIZE };

static cpu_set_t allowed[SETS];
static int core_cpu[CPUS]; /* one CPU of each core */
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
	return end != line && first >= 0 && first < CPUS ? (int)first : cpu;
}

static void look(void)
{
	cpu_set_t seen[SETS];

	CPU_ZERO_S(sizeof(seen), seen);
	is_known = sched_getaffinity(0, sizeof(allowed), allowed) == 0;
	for (int cpu = 0; is_known && cpu < CPUS; cpu++) {
		int core = CPU_ISSET_S(cpu, sizeof(allowed), allowed) ? first_sibling(cpu) : -1;
		if (core < 0 || CPU_ISSET_S(core, sizeof(seen), seen))
			continue;
		CPU_SET_S(core, sizeof(seen), seen);
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

static void keep_least(unsigned *least, uint64_t quota_us, uint64_t period_us)
{
	uint64_t full = period_us > 0 ? quota_us / period_us + (quota_us % period_us != 0) : 0;

	if (full > 0 && full < *least)
		*least = (unsigned)full;
}

/* Version 2: "400000 100000", or "max 100000". */
static void see_both(void *arg, const char *folder)
{
	char key[32];
	uint64_t quota_us, period_us;

	if (!group_number(folder, "cpu.max", "", &quota_us))
		return;
	snprintf(key, sizeof(key), "%" PRIu64 " ", quota_us);
	if (group_number(folder, "cpu.max", key, &period_us))
		keep_least(arg, quota_us, period_us);
}

/* Version 1; without a quota there it is -1, which is read as the largest number. */
static void see_each(void *arg, const char *folder)
{
	uint64_t quota_us, period_us;

	if (group_number(folder, "cpu.cfs_quota_us", "", &quota_us) &&
	    group_number(folder, "cpu.cfs_period_us", "", &period_us))
		keep_least(arg, quota_us, period_us);
}

unsigned cpus_granted(void)
{
	unsigned granted = cpus_cores();

	group_each(NULL, see_both, &granted);
	group_each("cpu", see_each, &granted);
	return granted;
}

void cpus_unbind(void)
{
	look_once();
	if (is_known)
		(void)sched_setaffinity(0, sizeof(allowed), allowed);
}

bool cpus_bind(unsigned index)
{
	cpu_set_t one[SETS];

	look_once();
	CPU_ZERO_S(sizeof(one), one);
	if (index < cores)
		CPU_SET_S(core_cpu[index], sizeof(one), one);
	if (sched_setaffinity(0, sizeof(one), one) == 0)
		return true;
	cpus_unbind();
	return false;
}
