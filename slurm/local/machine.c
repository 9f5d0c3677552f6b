/* SPDX-License-Identifier: MIT */
/* machine.c - asks NVML, the kernel and lbd.toml; picks GPUs and CPUs of what there is. */
#include "slurm/local/machine.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/host/cgroup.h"

enum { LIST_MAX_BYTES = 1 << 16 };

/* --- found ------------------------------------------------------------------------------------ */

/* NVML's functions return 0 for success. The union turns dlsym's pointer to an object into one to a
 * function, as POSIX allows. A name that is not there is a failure. */
static int call_nvml(void *nvml, const char *name, unsigned *count)
{
	union {
		void *object;
		int (*plain)(void);
		int (*counting)(unsigned *);
	} f = { .object = dlsym(nvml, name) };

	if (!f.object)
		return -1;
	return count ? f.counting(count) : f.plain();
}

/* 0 without NVML or a driver. */
static int gpus_by_nvml(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	unsigned count = 0;

	if (!nvml)
		return 0;
	if (call_nvml(nvml, "nvmlInit_v2", NULL) == 0) {
		if (call_nvml(nvml, "nvmlDeviceGetCount_v2", &count) != 0)
			count = 0;
		call_nvml(nvml, "nvmlShutdown", NULL);
	}
	dlclose(nvml);
	return count < MACHINE_MAX_GPUS ? (int)count : MACHINE_MAX_GPUS;
}

static uint64_t first_gpus(int64_t count)
{
	return count >= MACHINE_MAX_GPUS ? UINT64_MAX : ((uint64_t)1 << count) - 1;
}

static uint64_t find_gpus(const struct local_limits *limits)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < limits->gpu_id_count; i++)
		if (limits->gpu_ids[i] >= 0 && limits->gpu_ids[i] < MACHINE_MAX_GPUS)
			gpus |= (uint64_t)1 << limits->gpu_ids[i];
	if (limits->gpu_id_count)
		return limits->gpus >= 0 ? gpus_pick(gpus, 0, limits->gpus) : gpus;
	return first_gpus(limits->gpus >= 0 ? limits->gpus : gpus_by_nvml());
}

static void find_cpus(const struct local_limits *limits, cpu_set_t *out)
{
	int64_t count = limits->cpus > 0 ? limits->cpus : cgroup_cpus();
	cpu_set_t all[MACHINE_CPU_SETS], none;

	CPU_ZERO(&all[0]);
	CPU_ZERO(&none);
	if (sched_getaffinity(0, sizeof(all), all) || CPU_COUNT(&all[0]) == 0)
		CPU_SET(0, &all[0]);
	cpus_pick(&all[0], &none, count > 0 ? count : CPU_COUNT(&all[0]), out);
}

static int64_t find_mem_mb(void)
{
	int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	int64_t ours = cgroup_memory_bytes();

	return (ours >= 0 && ours < all ? ours : all) / (1 << 20);
}

void machine_find(struct machine *m, const struct local_limits *limits)
{
	char *gpus;

	memset(m, 0, sizeof(*m));
	m->gpus = find_gpus(limits);
	find_cpus(limits, &m->cpus);
	m->mem_mb = limits->mem_mb > 0 ? limits->mem_mb : find_mem_mb();
	m->jobs = limits->jobs;
	gpus = gpus_text(m->gpus);
	log_info("jobs on this machine may have GPUs [%s], %d CPUs, %lld MB", gpus,
		 CPU_COUNT(&m->cpus), (long long)m->mem_mb);
	free(gpus);
}

struct slots machine_slots(const struct machine *m)
{
	return (struct slots){ .gpus = __builtin_popcountll(m->gpus),
			       .cpus = CPU_COUNT(&m->cpus),
			       .mem_mb = m->mem_mb,
			       .jobs = m->jobs };
}

/* --- given out -------------------------------------------------------------------------------- */

uint64_t gpus_pick(uint64_t all, uint64_t taken, int64_t count)
{
	uint64_t picked = 0;

	for (int i = 0; i < MACHINE_MAX_GPUS && count > 0; i++) {
		uint64_t bit = (uint64_t)1 << i;

		if (!(all & ~taken & bit))
			continue;
		picked |= bit;
		count--;
	}
	return picked;
}

void cpus_pick(const cpu_set_t *all, const cpu_set_t *taken, int64_t count, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (size_t i = 0; i < CPU_SETSIZE && count > 0; i++) {
		if (!CPU_ISSET(i, all) || CPU_ISSET(i, taken))
			continue;
		CPU_SET(i, out);
		count--;
	}
}

/* --- as text ---------------------------------------------------------------------------------- */

static void add_number(struct buf *text, size_t number)
{
	buf_addf(text, text->len ? ",%zu" : "%zu", number);
}

static char *take_text(struct buf *text)
{
	return text->len ? buf_take(text) : xstrdup("");
}

char *gpus_text(uint64_t gpus)
{
	struct buf text;

	buf_init(&text, LIST_MAX_BYTES);
	for (size_t i = 0; i < MACHINE_MAX_GPUS; i++)
		if (gpus >> i & 1)
			add_number(&text, i);
	return take_text(&text);
}

char *cpus_text(const cpu_set_t *cpus)
{
	struct buf text;

	buf_init(&text, LIST_MAX_BYTES);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, cpus))
			add_number(&text, i);
	return take_text(&text);
}

/* The next number of a list, -1 at its end. */
static long next_number(const char **at)
{
	char *end;
	long number = strtol(*at, &end, 10);

	if (end == *at)
		return -1;
	*at = *end == ',' ? end + 1 : end;
	return number;
}

uint64_t gpus_parse(const char *text)
{
	uint64_t gpus = 0;
	long number;

	while ((number = next_number(&text)) >= 0)
		if (number < MACHINE_MAX_GPUS)
			gpus |= (uint64_t)1 << number;
	return gpus;
}

void cpus_parse(const char *text, cpu_set_t *out)
{
	long number;

	CPU_ZERO(out);
	while ((number = next_number(&text)) >= 0)
		if (number < CPU_SETSIZE)
			CPU_SET((size_t)number, out);
}
