/* SPDX-License-Identifier: MIT */
/* array_tasks.c - finds the folders of tasks, makes and counts the empty files that stand for
 * finished ones. */
#include "common/run/array_tasks.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/compare.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"

/* The number alone behind the prefix; -1: it is called otherwise. */
static int64_t number_behind(const char *prefix, const char *name)
{
	const char *digits = name + strlen(prefix);
	char *end;
	long long number;

	if (!text_begins_with(name, prefix) || *digits == '\0')
		return -1;
	number = strtoll(digits, &end, 10);
	return *end == '\0' ? number : -1;
}

/* Sorted. */
static int64_t *numbers_behind(const char *prefix, const char *folder, size_t *count)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int64_t *all = NULL;

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		int64_t number = number_behind(prefix, entry->d_name);

		if (number < 0)
			continue;
		all = xrealloc(all, (*count + 1) * sizeof(*all));
		all[(*count)++] = number;
	}
	if (dir)
		closedir(dir);
	if (*count > 1)
		qsort(all, *count, sizeof(*all), compare_int64);
	return all;
}

int64_t *array_task_folders(const char *folder, size_t *count)
{
	return numbers_behind("task-", folder, count);
}

void array_task_failed(const char *attempt, const char *task)
{
	char *path = path_join("%s/failed-%s", attempt, task);

	file_write_visible(path, "", 0, 0640, NULL);
	free(path);
}

/* Another change may hide behind the same time, which on some file systems has whole seconds: until
 * they are over a time is remembered that the folder never had, so that it is looked at again. */
static bool has_changed(const char *folder, int64_t *changed_ns)
{
	enum { UNSURE_MS = 2000 };
	struct stat st;
	int64_t now_ns, before_ns = *changed_ns;

	folder_look_anew(folder);
	if (stat(folder, &st) < 0)
		return false;
	now_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	*changed_ns = clock_wall_ms() < now_ns / 1000000 + UNSURE_MS ? now_ns - 1 : now_ns;
	return now_ns != before_ns;
}

int64_t *array_tasks_failed(const char *attempt, int64_t *changed_ns, size_t *count)
{
	*count = 0;
	return has_changed(attempt, changed_ns) ? numbers_behind("failed-", attempt, count) : NULL;
}

/* On the disk before anybody goes by it: what ended is not run again after a power cut either. */
static int put(const char *run_dir, const char *name, const char *text, struct err *err)
{
	char *folder = path_join("%s/tasks", run_dir), *path = path_join("%s/%s", folder, name);
	int rc;

	folder_make(folder, 0750, NULL);
	rc = file_write_atomic(path, text, strlen(text), 0640, err);
	free(folder);
	free(path);
	return rc;
}

static bool is_marked(const char *run_dir, const char *prefix, const char *task)
{
	char *folder = path_join("%s/tasks", run_dir), *name = xasprintf("%s%s", prefix, task);
	bool is;

	folder_look_anew(folder);
	is = folder_holds(folder, name);
	free(name);
	free(folder);
	return is;
}

bool array_task_is_done(const char *run_dir, const char *task)
{
	return is_marked(run_dir, "", task);
}

/* --- those that were cancelled ---------------------------------------------------------------- */

static char *cancelled_path(const char *run_dir, const char *task)
{
	return path_join("%s/tasks/cancelled-%s", run_dir, task);
}

int array_task_done(const char *run_dir, const char *task, struct err *err)
{
	char *cancelled = cancelled_path(run_dir, task);
	int rc = put(run_dir, task, "", err);

	if (rc == 0)
		unlink(cancelled); /* too late */
	free(cancelled);
	return rc;
}

bool array_task_is_cancelled(const char *run_dir, const char *task)
{
	return is_marked(run_dir, "cancelled-", task);
}

bool array_task_cancelled(const char *run_dir, int64_t task)
{
	char name[40], *number = name + strlen("cancelled-"), *path;

	snprintf(name, sizeof(name), "cancelled-%lld", (long long)task);
	if (array_task_is_done(run_dir, number) || array_task_is_cancelled(run_dir, number) ||
	    put(run_dir, name, "", NULL) < 0)
		return false;
	if (!array_task_is_done(run_dir, number))
		return true;
	path = cancelled_path(run_dir, number); /* it got done meanwhile */
	unlink(path);
	free(path);
	return false;
}

int64_t *array_tasks_cancelled(const char *run_dir, size_t *count)
{
	char *folder = path_join("%s/tasks", run_dir);
	int64_t *tasks = numbers_behind("cancelled-", folder, count);

	free(folder);
	return tasks;
}

void array_tasks_forget_cancelled(const char *run_dir)
{
	size_t count;
	int64_t *tasks = array_tasks_cancelled(run_dir, &count);

	for (size_t i = 0; i < count; i++) {
		char *path = path_join("%s/tasks/cancelled-%lld", run_dir, (long long)tasks[i]);

		unlink(path);
		free(path);
	}
	free(tasks);
}

/* --- other tasks than before ------------------------------------------------------------------ */

static void rename_mark(const char *folder, const char *from, const char *to, int64_t task)
{
	char *old = path_join("%s/%s%lld", folder, from, (long long)task);
	char *new = path_join("%s/%s%lld", folder, to, (long long)task);

	rename(old, new);
	free(old);
	free(new);
}

void array_tasks_become(const char *run_dir, const int64_t *tasks, size_t count)
{
	char *folder = path_join("%s/tasks", run_dir), *all = path_join("%s/all", folder);
	size_t done_count, other_count;
	int64_t *done = numbers_behind("", folder, &done_count);
	int64_t *other = numbers_behind("other-", folder, &other_count);

	for (size_t i = 0; i < done_count; i++)
		if (!is_among_int64(tasks, count, done[i]))
			rename_mark(folder, "", "other-", done[i]);
	for (size_t i = 0; i < other_count; i++)
		if (is_among_int64(tasks, count, other[i]))
			rename_mark(folder, "other-", "", other[i]);
	unlink(all); /* the first to begin tells how many there are */
	free(done);
	free(other);
	free(folder);
	free(all);
}

/* --- how many --------------------------------------------------------------------------------- */

bool array_tasks_any_done(const char *run_dir, int64_t attempt)
{
	char *folder = path_join("%s/attempts/%lld", run_dir, (long long)attempt), task[24];
	size_t count;
	int64_t *tasks = array_task_folders(folder, &count);
	bool is_any = false;

	for (size_t i = 0; i < count && !is_any; i++) {
		snprintf(task, sizeof(task), "%lld", (long long)tasks[i]);
		is_any = array_task_is_done(run_dir, task);
	}
	free(tasks);
	free(folder);
	return is_any;
}

int array_tasks_forget(const char *run_dir, struct err *err)
{
	char *folder = path_join("%s/tasks", run_dir);
	int rc = folder_remove(folder, err);

	free(folder);
	return rc;
}

void array_tasks_are(const char *run_dir, const char *count)
{
	char *path = path_join("%s/tasks/all", run_dir);

	if (!file_exists(path))
		put(run_dir, "all", count, NULL);
	free(path);
}

static int64_t count_marks(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int64_t count = 0;

	while (dir && (entry = readdir(dir)))
		count += text_is_digits(entry->d_name);
	if (dir)
		closedir(dir);
	return count;
}

bool array_tasks_count(const char *run_dir, int64_t *changed_ns, int64_t *done, int64_t *all)
{
	char *folder = path_join("%s/tasks", run_dir), *path = path_join("%s/all", folder), *text;
	bool is_news = has_changed(folder, changed_ns);

	if (is_news) {
		text = file_read(path, 32, NULL, NULL);
		*done = count_marks(folder);
		*all = text ? strtoll(text, NULL, 10) : -1;
		free(text);
	}
	free(folder);
	free(path);
	return is_news;
}

/* --- for people ------------------------------------------------------------------------------- */

static void add_tasks(json_t *run, const char *key, const int64_t *tasks, size_t count,
		      const int64_t *but, size_t but_count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (!is_among_int64(but, but_count, tasks[i]))
			json_array_append_new(list, json_integer(tasks[i]));
	json_object_set_new(run, key, list);
}

void array_tasks_tell(json_t *run)
{
	const char *dir = js_str(run, "dir", "");
	const json_t *attempts = json_object_get(run, "attempts");
	const json_t *newest = json_array_get(attempts, json_array_size(attempts) - 1);
	char *folder = path_join("%s/attempts/%lld", dir, (long long)js_int(newest, "number", 0));
	int64_t changed_ns = 0;
	size_t failed_count, cancelled_count;
	int64_t *failed = array_tasks_failed(folder, &changed_ns, &failed_count);
	int64_t *cancelled = array_tasks_cancelled(dir, &cancelled_count);

	add_tasks(run, "failed_tasks", failed, failed_count, cancelled, cancelled_count);
	add_tasks(run, "cancelled_tasks", cancelled, cancelled_count, NULL, 0);
	free(failed);
	free(cancelled);
	free(folder);
}
