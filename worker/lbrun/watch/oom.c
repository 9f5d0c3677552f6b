/* SPDX-License-Identifier: MIT */
/* oom.c - reads the memory events of this job's control group. */
#include "worker/lbrun/watch/oom.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/paths.h"

enum { CGROUP_MAX_BYTES = 64 * 1024 };

/* "oom_kill 3" among lines of "NAME COUNT". */
static int64_t count_in(const char *path)
{
	char *text = file_read(path, CGROUP_MAX_BYTES, NULL, NULL);
	const char *at = text;
	int64_t count = -1;

	while (at && strncmp(at, "oom_kill ", 9) != 0) {
		at = strchr(at, '\n');
		if (at)
			at++;
	}
	if (at)
		count = strtoll(at + 9, NULL, 10);
	free(text);
	return count;
}

/* "0::/path" is version 2, "N:…,memory,…:/path" version 1. */
static int64_t count_of_line(char *line, const char *mount)
{
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	bool is_v2 = strncmp(line, "0::", 3) == 0;
	char *path;
	int64_t count;

	if (!group)
		return -1;
	*group++ = '\0';
	if (is_v2)
		path = path_join("%s%s/memory.events", mount, group);
	else if (strstr(controllers, "memory"))
		path = path_join("%s/memory%s/memory.oom_control", mount, group);
	else
		return -1;
	count = count_in(path);
	free(path);
	return count;
}

static int64_t number(const char *text)
{
	int64_t n = text ? strtoll(text, NULL, 10) : 0;

	return n > 0 ? n : 0;
}

int64_t oom_limit_mb(const char *per_node, const char *per_cpu, const char *cpus)
{
	int64_t mb = number(per_node);

	return mb ? mb : number(per_cpu) * number(cpus);
}

int64_t oom_kills(const char *proc_cgroup, const char *mount)
{
	char *text = file_read(proc_cgroup, CGROUP_MAX_BYTES, NULL, NULL);
	char *rest = text;
	char *line;
	int64_t best = -1;

	while (rest && (line = strsep(&rest, "\n"))) {
		int64_t count = count_of_line(line, mount);

		if (count > best)
			best = count;
	}
	free(text);
	return best;
}
