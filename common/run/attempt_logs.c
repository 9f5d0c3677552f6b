/* SPDX-License-Identifier: MIT */
/* attempt_logs.c - out.log and its like, or the files that a batch script named. */
#include "common/run/attempt_logs.h"

#include <stdlib.h>

#include "common/base/bytes.h"
#include "common/base/paths.h"
#include "common/run/array_tasks.h"

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
	size_t count;
	int64_t *tasks = array_task_folders(folder, &count);

	for (size_t i = 0; i < count; i++)
		add(list, attempt, tasks[i],
		    path_join("%s/task-%lld/out.log", folder, (long long)tasks[i]));
	if (count == 0)
		add(list, attempt, -1, path_join("%s/out.log", folder));
	free(tasks);
}
