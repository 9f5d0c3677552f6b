/* SPDX-License-Identifier: MIT */
/* memory.c - memory in large pages, and how much is still ours: what the kernel calls available, or
 * what a limit of our control group (a batch job's, a container's) leaves, whichever is less. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/cpu/cpu.h"

enum { LINE_BYTES = 512, HUGE_BYTES = 2 << 20 };

void *cpu_aligned(size_t bytes)
{
	if (bytes > SIZE_MAX - HUGE_BYTES)
		return NULL;
	size_t align = bytes >= 2 * (size_t)HUGE_BYTES ? HUGE_BYTES : CPU_ALIGN_BYTES;
	bytes = (bytes + align - 1) / align * align;
	void *memory = aligned_alloc(align, bytes ? bytes : align);
	if (memory && align == HUGE_BYTES) /* a wish only: fewer, larger pages */
		(void)madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

/* The number behind `key` in a file of lines, or the first number when key is "". */
static bool number_in(const char *path, const char *key, uint64_t *value)
{
	FILE *file = fopen(path, "re");
	char line[LINE_BYTES];
	bool found = false;
	char *end;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		*value = strtoull(line + strlen(key), &end, 10);
		found = end != line + strlen(key); /* "max" is no number: no limit */
	}
	fclose(file);
	return found;
}

/* What one group's limit leaves; file pages that can be dropped do not count as used. */
static uint64_t leaves(const char *group)
{
	uint64_t limit, used, droppable = 0;
	char path[LINE_BYTES * 2];

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
	if (!number_in(path, "", &limit))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
	if (!number_in(path, "", &used))
		return limit;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", group);
	(void)number_in(path, "inactive_file ", &droppable);
	used -= droppable < used ? droppable : used;
	return limit > used ? limit - used : 0;
}

/* Our control group and those above it, each with a limit of its own (cgroup v2). */
static uint64_t group_leaves(void)
{
	uint64_t least = UINT64_MAX;
	char line[LINE_BYTES];
	FILE *file = fopen("/proc/self/cgroup", "re");
	char *group = file && fgets(line, sizeof(line), file) ? strstr(line, "::") : NULL;

	if (file)
		fclose(file);
	if (!group)
		return least;
	group += strlen("::");
	group[strcspn(group, "\n")] = '\0';
	for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
		*end = '\0';
		uint64_t here = leaves(group);
		least = here < least ? here : least;
	}
	return least;
}

uint64_t cpu_available(const struct device *dev)
{
	uint64_t kib, group = group_leaves();

	(void)dev;
	if (!number_in("/proc/meminfo", "MemAvailable:", &kib))
		return group;
	return kib * 1024 < group ? kib * 1024 : group;
}
