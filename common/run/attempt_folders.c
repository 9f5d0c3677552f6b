/* SPDX-License-Identifier: MIT */
/* attempt_folders.c - which attempts of a run have a folder. */
#include "common/run/attempt_folders.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

/* "12" → 12; 0 for anything else. */
static int64_t folder_number(const char *name)
{
	int64_t number = 0;

	if (name[0] < '1' || name[0] > '9' || strlen(name) > 18)
		return 0;
	for (; isdigit((unsigned char)*name); name++)
		number = number * 10 + (*name - '0');
	return *name == '\0' ? number : 0;
}

int64_t *attempt_folders(const char *run_dir, size_t *count)
{
	char *folder = path_join("%s/attempts", run_dir);
	DIR *dir = opendir(folder);
	int64_t *all = dir ? xcalloc(1, sizeof(*all)) : NULL;
	const struct dirent *entry;

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		int64_t number = folder_number(entry->d_name);

		if (number == 0)
			continue;
		all = xrealloc(all, (*count + 1) * sizeof(*all));
		all[(*count)++] = number;
	}
	if (dir)
		closedir(dir);
	if (all)
		qsort(all, *count, sizeof(*all), compare_int64);
	free(folder);
	return all;
}
