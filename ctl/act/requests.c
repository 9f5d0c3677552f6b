/* SPDX-License-Identifier: MIT */
/* requests.c - lbctl stacks: where a running trainer's processes are, asked for without ending it;
 * and what was written, opened. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt_folders.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"
#include "ctl/team/ask.h"
#include "hang.h"

enum {
	WRITTEN_MS = 60 * 1000, /* lbrun gives up then */
	LOOK_MS = 200,
	JUDGE_MS = 60 * 1000,
	FILE_MAX_BYTES = 64 * 1024 * 1024,
};

/* The newest "stacks-LAUNCH-TIME.txt" in the folder of an attempt; owned, NULL: there is none. */
static char *newest_in(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	char *best = NULL;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name, *dot = strchr(name, '.');

		if (strncmp(name, "stacks-", 7) != 0 || !dot || strcmp(dot, ".txt") != 0)
			continue;
		/* names of one launch sort by time, those of launches by their number */
		if (!best || strverscmp(name, best) > 0) {
			free(best);
			best = xstrdup(name);
		}
	}
	if (dir)
		closedir(dir);
	return best;
}

/* The folder of an attempt, or that of an array's task in it, which has the newest; owned. */
static char *newest_of(const char *attempt, char **folder)
{
	size_t count;
	int64_t *tasks = array_task_folders(attempt, &count);
	char *best = newest_in(attempt);

	*folder = xstrdup(attempt);
	for (size_t i = 0; i < count; i++) {
		char *of_task = path_join("%s/task-%lld", attempt, (long long)tasks[i]);
		char *name = newest_in(of_task);
		bool is_newer = name && (!best || strverscmp(name, best) > 0);

		free(is_newer ? best : name);
		free(is_newer ? *folder : of_task);
		best = is_newer ? name : best;
		*folder = is_newer ? of_task : *folder;
	}
	free(tasks);
	return best;
}

/* Of the newest attempt that has one: the folder that it lies in, and the file's name in it. */
static char *newest_stacks(const char *run_dir, char **folder)
{
	size_t count;
	int64_t *numbers = attempt_folders(run_dir, &count);
	char *name = NULL;

	*folder = NULL;
	while (!name && count > 0) {
		char *attempt = path_join("%s/attempts/%lld", run_dir, (long long)numbers[--count]);

		free(*folder);
		name = newest_of(attempt, folder);
		free(attempt);
	}
	free(numbers);
	return name;
}

/* Who is missing from a collective, where the ranks' recorders wrote anything. */
static void show_missing(struct ctl *ctl, const char *folder)
{
	char *flight = path_join("%s/flight", folder), *said = NULL;
	const char *const argv[] = { "python3", "-c", hang_text, flight, NULL };
	struct err err = { 0 };

	if (file_exists(flight) && program_output(argv, JUDGE_MS, &said, &err) == 0 && said[0]) {
		puts("collectives");
		print_lines("  ", said, &ctl->out);
	} else if (err.code != ERR_NONE) {
		hint(ctl, "the ranks' flight recorders were not read: %s", err.text);
	}
	free(said);
	free(flight);
}

static void show_file(struct ctl *ctl, const char *path)
{
	char *text = file_read(path, FILE_MAX_BYTES, NULL, NULL);

	if (text)
		print_lines("", text, &ctl->out);
	free(text);
}

static void show_others(struct ctl *ctl, const char *folder, const char *name)
{
	size_t len = strlen(name) - 4; /* without ".txt" */
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path = path_join("%s/%s", folder, entry->d_name), *clean;

		if (strncmp(entry->d_name, name, len) == 0 && strcmp(entry->d_name, name) != 0) {
			clean = clean_copy(path, &ctl->out);
			printf("%s  %s\n",
			       text_ends_with(path, ".nccl.json") ? "NCCL's own view" : "a node",
			       clean);
			free(clean);
		}
		free(path);
	}
	if (dir)
		closedir(dir);
}

static void show_dossier(struct ctl *ctl, const char *folder, const char *name)
{
	char *path = path_join("%s/%s", folder, name), *clean = clean_copy(path, &ctl->out);

	printf("%s\n", clean);
	show_missing(ctl, folder);
	show_others(ctl, folder, name);
	show_file(ctl, path);
	free(clean);
	free(path);
}

/* lbd tells nothing of what tasks of arrays say. */
static bool is_in_spool(const char *folder, const char *name)
{
	char *path = path_join("%s/spool.jsonl", folder);
	char *text = file_read(path, FILE_MAX_BYTES, NULL, NULL);
	bool is = text && strstr(text, name);

	free(text);
	free(path);
	return is;
}

/* The file appears when it is begun; it is complete when it is told of. */
static bool is_told(struct ctl *ctl, const char *run, const char *folder, const char *name)
{
	bool told = strncmp(strrchr(folder, '/'), "/task-", strlen("/task-")) == 0 &&
		    is_in_spool(folder, name);
	json_t *events = told ? NULL : ask_about(ctl, VERB_EVENTS, run, NULL, NULL), *event;
	size_t i;

	json_array_foreach(events, i, event) {
		told |= strcmp(js_str(event, "kind", ""), "stacks") == 0 &&
			text_ends_with(js_str(event, "text", ""), name);
	}
	json_decref(events);
	return told;
}

static int wait_and_show(struct ctl *ctl, const char *run, const char *run_dir, const char *before,
			 struct err *err)
{
	int64_t end_ms = clock_mono_ms() + WRITTEN_MS;
	char *folder = NULL, *name = NULL;
	bool is_new = false;

	while (!is_new && clock_mono_ms() < end_ms && !interrupted()) {
		free(name);
		free(folder);
		name = newest_stacks(run_dir, &folder);
		is_new = name && (!before || strcmp(name, before) != 0) &&
			 is_told(ctl, run, folder, name);
		if (!is_new)
			nap(LOOK_MS);
	}
	if (is_new)
		show_dossier(ctl, folder, name);
	else
		err_set(err, ERR_TIMEOUT,
			"the stacks of %s are not written yet; lbctl events tells", run);
	free(name);
	free(folder);
	return is_new ? 0 : -1;
}

/* Of a run that does not run: what was written last, when it hung. */
static int show_last(struct ctl *ctl, const char *run_dir, struct err *err)
{
	char *folder, *name = newest_stacks(run_dir, &folder);

	if (name) {
		*err = (struct err){ 0 };
		show_dossier(ctl, folder, name);
	}
	free(folder);
	free(name);
	return err->code == ERR_NONE ? 0 : -1;
}

int stacks_run(struct ctl *ctl, struct err *err)
{
	const char *run = ctl->operands.words[0];
	json_t *status = ask_about(ctl, VERB_STATUS, run, NULL, err), *data;
	char *dir = js_bytes_take(json_object_get(status, "dir")), *folder, *before;
	int rc = -1;

	json_decref(status);
	if (!dir)
		return -1;
	before = newest_stacks(dir, &folder);
	data = ask_about(ctl, VERB_STACKS, run, NULL, err);
	rc = data ? wait_and_show(ctl, run, dir, before, err) : show_last(ctl, dir, err);
	json_decref(data);
	free(before);
	free(folder);
	free(dir);
	return rc;
}
