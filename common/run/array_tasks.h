/* SPDX-License-Identifier: MIT */
/* array_tasks.h - which tasks of an array have begun in an attempt: attempts/N/task-INDEX/; and
 * which are done: runs/NAME/tasks/, with an empty file for each that completed in any attempt, and
 * "all" with their number. */
#ifndef COMMON_RUN_ARRAY_TASKS_H
#define COMMON_RUN_ARRAY_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Their numbers, sorted; owned; NULL and *count 0 where there are none. */
int64_t *array_tasks_begun(const char *attempt, size_t *count);

/* `task`: its number, as text. */
bool array_task_is_done(const char *run_dir, const char *task);
void array_task_done(const char *run_dir, const char *task);
/* All are to be run again. 0, or -1 with err. */
int array_tasks_forget(const char *run_dir, struct err *err);
/* How many there are; told once. */
void array_tasks_are(const char *run_dir, const char *count);

/* False when the folder is not there (no array, or none has begun), or has not changed since
 * *changed_ns, which it sets (0 at first). */
bool array_tasks_count(const char *run_dir, int64_t *changed_ns, int64_t *done, int64_t *all);

#endif
