/* SPDX-License-Identifier: MIT */
/* memory.c - memory in large pages, and how much is still ours: what the kernel calls available, or
 * what a limit of our control group (a batch job's, a container's) leaves, whichever is less. */
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/cpu/cpu.h"
#include "kernels/machine/group.h"

enum { HUGE_BYTES = 2 << 20 };

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

/* What says it in the two versions of control groups, and the least that was found. */
struct limit {
	const char *controller, *most, *used, *droppable;
	uint64_t leaves;
};

/* File pages that can be dropped do not count as used. */
static void see_limit(void *arg, const char *folder)
{
	struct limit *l = arg;
	uint64_t most, used = 0, droppable = 0;

	if (!group_number(folder, l->most, "", &most))
		return;
	(void)group_number(folder, l->used, "", &used);
	(void)group_number(folder, "memory.stat", l->droppable, &droppable);
	used -= droppable < used ? droppable : used;
	uint64_t leaves = most > used ? most - used : 0;
	l->leaves = leaves < l->leaves ? leaves : l->leaves;
}

/* Our control group and those above it, each with a limit of its own. */
static uint64_t group_leaves(void)
{
	struct limit second = { NULL, "memory.max", "memory.current", "inactive_file ",
				UINT64_MAX };
	struct limit first = { "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
			       "total_inactive_file ", UINT64_MAX };

	group_each(second.controller, see_limit, &second);
	group_each(first.controller, see_limit, &first);
	return first.leaves < second.leaves ? first.leaves : second.leaves;
}

uint64_t cpu_available(const struct device *dev)
{
	uint64_t kib, group = group_leaves();

	(void)dev;
	if (!group_number("/proc", "meminfo", "MemAvailable:", &kib))
		return group;
	return kib * 1024 < group ? kib * 1024 : group;
}
