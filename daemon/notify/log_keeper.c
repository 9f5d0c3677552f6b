/* SPDX-License-Identifier: MIT */
/* log_keeper.c - goes through runs that ended long ago, one after the other, in a thread. */
#include "daemon/notify/log_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/zst.h"

enum {
	LOOK_MS = 3600 * 1000, /* when there is nothing more to do */
	FIRST_LOOK_MS = 1000,  /* lbd has better things to do when it starts */
	SETTLED_S = 30,        /* lbrun's last words may come after the run's end */
};

enum chore { COMPRESS, REMOVE, CHORE_COUNT };

/* How far each chore has come lies in the ledger. */
static const struct {
	const char *ended_key, *id_key;
} cursor_keys[CHORE_COUNT] = {
	[COMPRESS] = { "logs_compressed_ms", "logs_compressed_id" },
	[REMOVE] = { "logs_removed_ms", "logs_removed_id" },
};

/* What is output, and what else lbd and lbrun write; that goes with a periodic job's run. The last
 * of each are patterns, where an array has a file for each of its tasks. */
static const char *const output_names[] = { "out.log", "spool.jsonl" };
static const char *const removed_outputs[] = {
	"out.log", "out.log.zst", "spool.jsonl", "spool.jsonl.zst", "out-*.log",
};
static const char *const attempt_names[] = {
	"attempt.json", "claim", "exit.json", "job.sh", "order", "err.log", "done-*",
};
static const char *const run_names[] = {
	"code.json", "env.json",       "record.json",   "slurm_script",
	"spec.toml", "submitted.toml", "resumes*.json",
};
static const char *const any_name[] = { "*" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct log_keeper {
	struct lbd *lbd;
	uv_timer_t timer;
	uv_work_t work;
	bool busy, closing, closed;

	enum chore chore; /* what the thread does, with whom */
	char *dir;
	bool is_periodic;
	int64_t ended_ms, id;
	struct err err;
};

/* --- in the thread --------------------------------------------------------------------------- */

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A regular file of ours that nobody has written since the run ended: it may have been started
 * again while this thread was on its way. */
static bool is_left_over(const struct log_keeper *k, int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_uid == geteuid() && st.st_mtim.tv_sec <= k->ended_ms / 1000 + SETTLED_S;
}

static bool is_named(const char *name, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/* A link by which lbrun says where a script's output is; what it leads to stays. */
static bool is_link(int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
	       st.st_uid == geteuid();
}

static void remove_files(const struct log_keeper *k, int folder, const char *const *patterns,
			 size_t count)
{
	int own = open_folder(folder, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_named(entry->d_name, patterns, count) &&
		    (is_left_over(k, folder, entry->d_name) ||
		     (k->is_periodic && is_link(folder, entry->d_name))))
			unlinkat(folder, entry->d_name, 0);
	if (dir)
		closedir(dir);
	else if (own >= 0)
		close(own);
}

/* A folder of nothing but files. */
static void remove_folder(const struct log_keeper *k, int parent, const char *name)
{
	int folder = open_folder(parent, name);

	if (folder < 0)
		return;
	remove_files(k, folder, any_name, COUNT(any_name));
	close(folder);
	unlinkat(parent, name, AT_REMOVEDIR);
}

static void compress_attempt(struct log_keeper *k, int folder)
{
	for (size_t i = 0; i < COUNT(output_names); i++) {
		struct err err = { 0 };

		if (is_left_over(k, folder, output_names[i]) &&
		    zst_compress(folder, output_names[i], &err) < 0)
			k->err = err;
	}
}

static void remove_attempt(const struct log_keeper *k, int folder)
{
	remove_files(k, folder, removed_outputs, COUNT(removed_outputs));
	if (!k->is_periodic)
		return;
	remove_files(k, folder, attempt_names, COUNT(attempt_names));
	remove_folder(k, folder, "usage");
}

/* Each folder in `parent` whose name is `prefix` and a number: an attempt, or a task in one. */
static void each_folder(struct log_keeper *k, int parent, const char *prefix,
			void (*each)(struct log_keeper *k, int folder))
{
	int own = open_folder(parent, ".");
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(prefix);
		bool is_meant = strncmp(entry->d_name, prefix, len) == 0 &&
				text_is_digits(entry->d_name + len);
		int folder = is_meant ? open_folder(parent, entry->d_name) : -1;

		if (folder < 0)
			continue;
		each(k, folder);
		close(folder);
		if (k->chore == REMOVE && k->is_periodic)
			unlinkat(parent, entry->d_name, AT_REMOVEDIR); /* only when empty */
	}
	if (dir)
		closedir(dir);
	else if (own >= 0)
		close(own);
}

static void do_task(struct log_keeper *k, int folder)
{
	if (k->chore == COMPRESS)
		compress_attempt(k, folder);
	else
		remove_attempt(k, folder);
}

static void do_attempt(struct log_keeper *k, int folder)
{
	each_folder(k, folder, "task-", do_task);
	do_task(k, folder);
}

static void keep_checkpoints(struct log_keeper *k, int folder)
{
	(void)k;
	(void)folder;
}

static void remove_run(struct log_keeper *k, int run)
{
	int checkpoints = open_folder(run, "checkpoints");

	if (checkpoints >= 0) {
		each_folder(k, checkpoints, "task-", keep_checkpoints);
		close(checkpoints);
	}
	remove_files(k, run, run_names, COUNT(run_names));
	remove_folder(k, run, "tasks");
	remove_folder(k, run, "sync");
	unlinkat(run, "attempts", AT_REMOVEDIR);
	unlinkat(run, "checkpoints", AT_REMOVEDIR);
	rmdir(k->dir);
}

static void do_chore(uv_work_t *work)
{
	struct log_keeper *k = work->data;
	int run = open_folder(AT_FDCWD, k->dir),
	    attempts = run < 0 ? -1 : open_folder(run, "attempts");

	if (attempts >= 0) {
		each_folder(k, attempts, "", do_attempt);
		close(attempts);
	}
	if (run >= 0) {
		if (k->chore == REMOVE && k->is_periodic)
			remove_run(k, run);
		close(run);
	}
}

/* --- on the loop ----------------------------------------------------------------------------- */

static void on_look(uv_timer_t *timer);

static void free_if_closed(struct log_keeper *k)
{
	if (k->closed && !k->busy) {
		free(k->dir);
		free(k);
	}
}

static void keep_cursor(const struct log_keeper *k)
{
	struct ledger *ledger = k->lbd->ledger;
	struct err err = { 0 };

	if (ledger_meta_put(ledger, cursor_keys[k->chore].ended_key, k->ended_ms, &err) < 0 ||
	    ledger_meta_put(ledger, cursor_keys[k->chore].id_key, k->id, &err) < 0 ||
	    ledger_commit(ledger, &err) < 0)
		log_warn("logs: %s", err.text);
}

static void on_done(uv_work_t *work, int status)
{
	struct log_keeper *k = work->data;

	(void)status;
	k->busy = false;
	if (k->closing) {
		free_if_closed(k);
		return;
	}
	if (k->err.code != ERR_NONE)
		log_warn("logs: %s: %s", k->dir, k->err.text);
	keep_cursor(k);
	uv_timer_start(&k->timer, on_look, 0, 0);
}

/* The next run that is due for this chore, if any, goes to the thread. */
static bool start(struct log_keeper *k, enum chore chore, int64_t after_ms)
{
	struct ledger *ledger = k->lbd->ledger;
	struct ledger_ended run;
	int64_t seen_ms, seen_id;

	if (after_ms == 0 ||
	    ledger_meta_get(ledger, cursor_keys[chore].ended_key, 0, &seen_ms, NULL) < 0 ||
	    ledger_meta_get(ledger, cursor_keys[chore].id_key, 0, &seen_id, NULL) < 0 ||
	    ledger_run_next_ended(ledger, seen_ms, seen_id, clock_wall_ms() - after_ms, &run,
				  NULL) < 0)
		return false;
	k->chore = chore;
	k->err = (struct err){ 0 };
	free(k->dir);
	k->dir = xstrdup(run.dir);
	k->is_periodic = run.is_periodic;
	k->ended_ms = run.ended_ms;
	k->id = run.id;
	k->busy = uv_queue_work(k->lbd->loop, &k->work, do_chore, on_done) == 0;
	return k->busy;
}

static void on_look(uv_timer_t *timer)
{
	struct log_keeper *k = timer->data;
	const struct config *config = &k->lbd->config;

	if (!start(k, REMOVE, config->retain_logs_ms) &&
	    !start(k, COMPRESS, config->compress_logs_ms))
		uv_timer_start(timer, on_look, LOOK_MS, 0);
}

struct log_keeper *log_keeper_open(struct lbd *lbd)
{
	struct log_keeper *k;

	if (lbd->config.compress_logs_ms == 0 && lbd->config.retain_logs_ms == 0)
		return NULL;
	k = xcalloc(1, sizeof(*k));
	k->lbd = lbd;
	k->timer.data = k->work.data = k;
	uv_timer_init(lbd->loop, &k->timer);
	uv_timer_start(&k->timer, on_look, FIRST_LOOK_MS, 0);
	return k;
}

static void on_closed(uv_handle_t *handle)
{
	struct log_keeper *k = handle->data;

	k->closed = true;
	free_if_closed(k);
}

void log_keeper_close(struct log_keeper *keeper)
{
	if (keeper == NULL)
		return;
	keeper->closing = true;
	uv_close((uv_handle_t *)&keeper->timer, on_closed);
}
