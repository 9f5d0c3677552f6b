/* SPDX-License-Identifier: MIT */
/* cgroup.c - reads the limits of a control group and of all above it: groups of version 2, and for
 * memory the controller of version 1. */
#include "common/host/cgroup.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FILE_MAX_BYTES = 1 << 20 };

/* A number of bytes; -1: no limit. */
static int64_t bytes_in(const char *group, const char *name)
{
	char *path = path_join("%s/%s", group, name), *text = file_read(path, 64, NULL, NULL);
	char *end = text;
	unsigned long long bytes = text ? strtoull(text, &end, 10) : 0;
	int64_t found = end == text || bytes >= (1ULL << 60) ? -1 : (int64_t)bytes;

	free(text);
	free(path);
	return found;
}

static int64_t memory_max(const char *group)
{
	return bytes_in(group, "memory.max");
}

static int64_t memory_limit(const char *group)
{
	return bytes_in(group, "memory.limit_in_bytes");
}

/* "150000 100000", microseconds of CPU time in so many of time, are two CPUs, "max ..." all. */
static int64_t cpu_max(const char *group)
{
	char *path = path_join("%s/cpu.max", group), *text = file_read(path, 64, NULL, NULL);
	char *end = text;
	long long quota = text ? strtoll(text, &end, 10) : 0;
	long long period = end == text ? 0 : strtoll(end, NULL, 10);

	free(text);
	free(path);
	return quota > 0 && period > 0 ? (quota + period - 1) / period : -1;
}

/* Of our group, behind `mark`, and of all above it; -1: none has a limit. */
static int64_t least(const char *mark, const char *root, int64_t (*limit)(const char *group))
{
	char *text = file_read("/proc/self/cgroup", FILE_MAX_BYTES, NULL, NULL);
	const char *at = text ? strstr(text, mark) : NULL;
	char *path = at ? xstrndup(at + strlen(mark), strcspn(at + strlen(mark), "\n")) : NULL;
	int64_t found = -1;

	for (char *end = path ? path + strlen(path) : NULL; end; end = strrchr(path, '/')) {
		char *group;
		int64_t its;

		*end = '\0';
		group = path_join("%s%s", root, path);
		its = limit(group);
		free(group);
		if (its >= 0 && (found < 0 || its < found))
			found = its;
	}
	free(path);
	free(text);
	return found;
}

int64_t cgroup_memory_bytes(void)
{
	int64_t new = least("0::", "/sys/fs/cgroup", memory_max);
	int64_t old = least(":memory:", "/sys/fs/cgroup/memory", memory_limit);

	return new < 0 || (old >= 0 && old < new) ? old : new;
}

int64_t cgroup_cpus(void)
{
	return least("0::", "/sys/fs/cgroup", cpu_max);
}
