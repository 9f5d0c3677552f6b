/* SPDX-License-Identifier: MIT */
/* attempt_logs.c - out.log and its like, or the files that a batch script named. */
#include "common/run/attempt_logs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/compare.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

struct tasks {
	int64_t *items;
	size_t count;
};

static void find_tasks(const char *folder, struct tasks *t)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *end;
		long long number;

		if (strncmp(entry->d_name, "task-", 5) != 0 || entry->d_name[5] == '\0')
			continue;
		number = strtoll(entry->d_name + 5, &end, 10);
		if (*end != '\0' || number < 0)
			continue;
		t->items = xrealloc(t->items, (t->count + 1) * sizeof(*t->items));
		t->items[t->count++] = number;
	}
	if (dir)
		closedir(dir);
	if (t->count > 1)
		qsort(t->items, t->count, sizeof(*t->items), compare_int64);
}

static void add(json_t *list, int64_t attempt, int64_t task, char *path)
{
	json_t *row = json_pack("{s:I, s:o}", "attempt", (json_int_t)attempt, "path",
				js_bytes(path));

	if (task >= 0)
		json_object_set_new(row, "task", json_integer(task));
	json_array_append_new(list, row);
	free(path);
}

void attempt_logs(const char *folder, int64_t attempt, json_t *list)
{
	struct tasks t = { 0 };

	find_tasks(folder, &t);
	for (size_t i = 0; i < t.count; i++)
		add(list, attempt, t.items[i],
		    path_join("%s/task-%lld/out.log", folder, (long long)t.items[i]));
	if (t.count == 0)
		add(list, attempt, -1, path_join("%s/out.log", folder));
	free(t.items);
}
