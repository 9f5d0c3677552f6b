/* SPDX-License-Identifier: MIT */
/* run_space.c - the folders of a run, looked at from outside: what its lbrun was told, where its
 * checkpoints are, what takes how much. */
#include "ctl/look/run_space.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/handed.h"
#include "common/checkpoint/retention.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt_folders.h"

enum { ATTEMPT_MAX_BYTES = 4 * 1024 * 1024, BLOCK_BYTES = 512 };

const char *space_name(enum space_kind kind)
{
	static const char *const names[SPACE_KINDS] = {
		[SPACE_CHECKPOINTS] = "checkpoints",
		[SPACE_LOGS] = "logs",
		[SPACE_SPOOLS] = "spools",
		[SPACE_OTHER] = "other",
	};

	return names[kind];
}

static int64_t newest_attempt(const char *run_dir)
{
	size_t count;
	int64_t *numbers = attempt_folders(run_dir, &count);
	int64_t newest = count > 0 ? numbers[count - 1] : 0;

	free(numbers);
	return newest;
}

json_t *run_space_attempt(const char *run_dir)
{
	char *path = path_join("%s/attempts/%lld/attempt.json", run_dir,
			       (long long)newest_attempt(run_dir));
	json_t *attempt = js_load(path, ATTEMPT_MAX_BYTES, NULL);

	free(path);
	return attempt;
}

char *run_checkpoint_folder(const json_t *attempt, const char *run_dir)
{
	char *folder = js_bytes_take(json_object_get(attempt, "checkpoint_dir"));

	if (folder && folder[0] == '/')
		return folder;
	free(folder);
	return path_join("%s/checkpoints", run_dir);
}

int run_checkpoint_folders(const char *folder,
			   int (*each)(const char *folder, const char *handed, void *arg),
			   void *arg)
{
	size_t count;
	int64_t *tasks = array_task_folders(folder, &count);
	int rc = count == 0 ? each(folder, HANDED_FILE, arg) : 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		char *of_task = path_join("%s/task-%lld", folder, (long long)tasks[i]);
		char *handed = path_join("resumes-%lld.json", (long long)tasks[i]);

		rc = each(of_task, handed, arg);
		free(handed);
		free(of_task);
	}
	free(tasks);
	return rc;
}

/* NULL: nothing was said. */
static char *take(const json_t *attempt, const char *key)
{
	const json_t *value = json_object_get(attempt, key);

	return value && !json_is_null(value) ? js_bytes_take(value) : NULL;
}

struct checkpoint_rules *run_checkpoint_rules(const json_t *attempt, struct err *err)
{
	char *pattern = take(attempt, "checkpoint_pattern"),
	     *layout = take(attempt, "checkpoint_layout");
	char *complete_when = take(attempt, "checkpoint_complete_when");
	struct checkpoint_rules *rules = checkpoint_rules_create(layout, pattern, complete_when,
								 err);

	free(layout);
	free(pattern);
	free(complete_when);
	return rules;
}

struct old {
	struct checkpoint_rules *rules;
	const char *run_dir;
	int64_t bytes;
};

static int add_old(const char *folder, const char *handed_file, void *arg)
{
	const struct retention rule = { .keep_latest_k = RETENTION_LEAST };
	struct old *old = arg;
	struct checkpoint_list list;
	struct handed handed;
	struct look look = { 0 };
	bool *goes;

	if (checkpoints_list(old->rules, folder, &look, &list, NULL) < 0)
		return 0;
	handed_load(&handed, old->run_dir, handed_file);
	handed_mark(&handed, &list);
	handed_clear(&handed);
	goes = xcalloc(list.count + 1, sizeof(*goes));
	retention_choose(&rule, &list, NULL, NULL, goes);
	for (size_t i = 0; i < list.count; i++)
		old->bytes += goes[i] ? list.items[i].bytes : 0;
	free(goes);
	checkpoint_list_clear(&list);
	return 0;
}

/* What keep_latest_k = 2 would free. */
static int64_t old_checkpoints(const json_t *attempt, const char *run_dir, const char *folder)
{
	struct old old = { .rules = run_checkpoint_rules(attempt, NULL), .run_dir = run_dir };

	if (old.rules)
		run_checkpoint_folders(folder, add_old, &old);
	checkpoint_rules_destroy(old.rules);
	return old.bytes;
}

static bool is_in(const char *path, const char *folder)
{
	return strcmp(path, folder) == 0 || path_below(path, folder);
}

static enum space_kind kind_of(const FTSENT *entry, const struct run_space *space)
{
	if (is_in(entry->fts_path, space->checkpoints))
		return SPACE_CHECKPOINTS;
	if (text_begins_with(entry->fts_name, "spool.jsonl"))
		return SPACE_SPOOLS;
	if (text_begins_with(entry->fts_name, "out.log") ||
	    text_begins_with(entry->fts_name, "stacks-"))
		return SPACE_LOGS;
	return SPACE_OTHER;
}

static void add(struct run_space *space, const FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_DP:
		return; /* counted on the way in */
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		space->is_cut = true;
		return;
	default:
		space->bytes[kind_of(entry, space)] += (int64_t)entry->fts_statp->st_blocks *
						       BLOCK_BYTES;
	}
}

static void walk(const char *folder, struct run_space *space)
{
	char *path = xstrdup(folder), *paths[] = { path, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	const FTSENT *entry;

	while (tree && (entry = fts_read(tree)))
		add(space, entry);
	if (tree)
		fts_close(tree);
	free(path);
}

void run_space_measure(const char *run_dir, struct run_space *out)
{
	json_t *attempt = run_space_attempt(run_dir);

	*out = (struct run_space){ .checkpoints = run_checkpoint_folder(attempt, run_dir) };
	out->is_elsewhere = !is_in(out->checkpoints, run_dir);
	walk(run_dir, out);
	if (out->is_elsewhere && file_exists(out->checkpoints))
		walk(out->checkpoints, out);
	out->old_checkpoints = old_checkpoints(attempt, run_dir, out->checkpoints);
	json_decref(attempt);
}

void run_space_clear(struct run_space *space)
{
	free(space->checkpoints);
	*space = (struct run_space){ 0 };
}

int64_t run_space_total(const struct run_space *space)
{
	int64_t total = 0;

	for (int i = 0; i < SPACE_KINDS; i++)
		total += space->bytes[i];
	return total;
}
