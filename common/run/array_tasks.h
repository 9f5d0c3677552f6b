/* SPDX-License-Identifier: MIT */
/* array_tasks.h - the folders of an array's tasks, task-INDEX/ in that of an attempt and in that of
 * the checkpoints; and which tasks are done: runs/NAME/tasks/, with an empty file for each that
 * completed in any attempt, "cancelled-INDEX" for one that somebody cancelled, "other-INDEX" for
 * one that completed when the array had it, and "all" with their number. */
#ifndef COMMON_RUN_ARRAY_TASKS_H
#define COMMON_RUN_ARRAY_TASKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* The numbers of those that have one there, sorted; owned; NULL and *count 0: none has. */
int64_t *array_task_folders(const char *folder, size_t *count);

/* So many that failed in an attempt are told one by one; its end says how many there are. */
enum { ARRAY_TOLD_SINGLY = 100 };

/* A task has failed in the attempt of this folder, by nobody's order: a mark beside its own.
 * And the numbers of all those, as above; NULL, too, when they are those that they were at
 * *changed_ns, which it sets (0 at first). */
void array_task_failed(const char *attempt, const char *task);
int64_t *array_tasks_failed(const char *attempt, int64_t *changed_ns, size_t *count);

/* `task`: its number, as text. Done: 0, or -1 with err. */
bool array_task_is_done(const char *run_dir, const char *task);
int array_task_done(const char *run_dir, const char *task, struct err *err);
/* All are to be run again. 0, or -1 with err. */
int array_tasks_forget(const char *run_dir, struct err *err);
/* Somebody cancelled it in the scheduler: it is not run again until the run is restarted. True:
 * that is new, and on the disk. */
bool array_task_cancelled(const char *run_dir, int64_t task);
bool array_task_is_cancelled(const char *run_dir, const char *task);
/* As array_task_folders. */
int64_t *array_tasks_cancelled(const char *run_dir, size_t *count);
void array_tasks_forget_cancelled(const char *run_dir);
/* These are its tasks from now on, ascending: others, though done, do not count until they are
 * again. */
void array_tasks_become(const char *run_dir, const int64_t *tasks, size_t count);
/* Did one get done in this attempt? One that was done before has no folder in it. */
bool array_tasks_any_done(const char *run_dir, int64_t attempt);
/* Adds to the object of a run, which has its "dir" and "attempts", those that failed in the newest
 * and those that somebody cancelled: "failed_tasks", "cancelled_tasks". */
void array_tasks_tell(json_t *run);
/* How many there are; told once. */
void array_tasks_are(const char *run_dir, const char *count);

/* False when the folder is not there (no array, or none has begun), or has for sure not changed
 * since *changed_ns, which it sets (0 at first). */
bool array_tasks_count(const char *run_dir, int64_t *changed_ns, int64_t *done, int64_t *all);

#endif
