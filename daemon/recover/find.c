/* SPDX-License-Identifier: MIT */
/* find.c - which runs have a folder. */
#include "daemon/recover/find.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "daemon/recover/record.h"

int64_t mtime_ms(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_mtim.tv_sec * 1000LL + st.st_mtim.tv_nsec / 1000000;
}

static bool is_ours(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid == geteuid();
}

static int64_t created_ms(const char *dir)
{
	char *spec = path_join("%s/spec.toml", dir);
	json_t *record = record_load(dir);
	int64_t ms = js_int(record, "created_ms", mtime_ms(spec));

	json_decref(record);
	free(spec);
	return ms;
}

/* A folder of a run of ours: where runs/ is shared there are others'. */
static bool is_run(const char *dir, const char *name)
{
	char *spec = path_join("%s/spec.toml", dir), *record = path_join("%s/record.json", dir);
	bool is = name_check(name, NULL) == 0 && is_ours(dir) &&
		  (file_exists(spec) || file_exists(record));

	free(spec);
	free(record);
	return is;
}

static int older_first(const void *a, const void *b)
{
	const struct found *one = a, *two = b;

	if (one->created_ms != two->created_ms)
		return one->created_ms < two->created_ms ? -1 : 1;
	return strcmp(one->name, two->name);
}

struct found *find_runs(const char *folder, size_t *count)
{
	DIR *dir = opendir(folder);
	struct found *all = NULL;
	struct dirent *entry;

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		char *path = path_join("%s/%s", folder, entry->d_name);

		if (is_run(path, entry->d_name)) {
			all = xrealloc(all, (*count + 1) * sizeof(*all));
			all[(*count)++] = (struct found){ xstrdup(entry->d_name),
							  created_ms(path) };
		}
		free(path);
	}
	if (dir)
		closedir(dir);
	if (all)
		qsort(all, *count, sizeof(*all), older_first);
	return all;
}

void free_runs(struct found *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(all[i].name);
	free(all);
}
