/* SPDX-License-Identifier: MIT */
/* group.c - both versions of control groups; a machine may have the first, the second, or some
 * controllers of each. */
#include "kernels/machine/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096 + 64 };

/* "4:cpu,cpuacct:/job" is of the controllers cpu and cpuacct, "0::/job" of version 2. */
static char *path_in(char *line, const char *controller)
{
	char *list = strchr(line, ':'), *path = list ? strchr(++list, ':') : NULL, *rest;

	if (!path)
		return NULL;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (!controller)
		return *list == '\0' ? path : NULL;
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (strcmp(word, controller) == 0)
			return path;
	return NULL;
}

/* A container may be told a path that only the host has: its own group is the root then. */
static void see_upwards(const char *controller, char *path, group_see *see, void *arg)
{
	char folder[LINE_BYTES + 64];

	for (char *end = path + strlen(path); end; end = strrchr(path, '/')) {
		*end = '\0';
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%s%s", controller ? "/" : "",
			 controller ? controller : "", path);
		see(arg, folder);
	}
}

void group_each(const char *controller, group_see *see, void *arg)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[LINE_BYTES], *path = NULL;

	while (file && !path && fgets(line, sizeof(line), file))
		path = path_in(line, controller);
	if (file)
		fclose(file);
	if (path)
		see_upwards(controller, path, see, arg);
}

bool group_number(const char *folder, const char *name, const char *key, uint64_t *value)
{
	char line[LINE_BYTES], *end;
	bool found = false;

	snprintf(line, sizeof(line), "%s/%s", folder, name);
	FILE *file = fopen(line, "re");
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
