/* SPDX-License-Identifier: MIT */
/* log_keeper.c - goes through runs that ended long ago, one after the other, in a thread. */
#include "daemon/notify/log_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
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

/* What is output, and what else lbd and lbrun write; that goes with a periodic job's run. */
static const char *const output_names[] = { "out.log", "spool.jsonl" };
static const char *const attempt_names[] = {
	"attempt.json", "claim", "exit.json", "job.sh", "order",
};
static const char *const run_names[] = {
	"env.json", "record.json", "resumes.json", "spec.toml", "submitted.toml",
};

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

static void remove_file(const struct log_keeper *k, int folder, const char *name)
{
	if (is_left_over(k, folder, name))
		unlinkat(folder, name, 0);
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

/* What a job used, a file for each rank. */
static void remove_usage(const struct log_keeper *k, int attempt)
{
	int folder = open_folder(attempt, "usage");
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		remove_file(k, folder, entry->d_name);
	if (dir)
		closedir(dir);
	else if (folder >= 0)
		close(folder);
	unlinkat(attempt, "usage", AT_REMOVEDIR);
}

static void remove_attempt(const struct log_keeper *k, int folder)
{
	for (size_t i = 0; i < COUNT(output_names); i++) {
		char *compressed = xasprintf("%s.zst", output_names[i]);

		remove_file(k, folder, output_names[i]);
		remove_file(k, folder, compressed);
		free(compressed);
	}
	for (size_t i = 0; k->is_periodic && i < COUNT(attempt_names); i++)
		remove_file(k, folder, attempt_names[i]);
	if (k->is_periodic)
		remove_usage(k, folder);
}

static bool is_number(const char *name)
{
	return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

static void each_attempt(struct log_keeper *k, int attempts)
{
	DIR *dir = fdopendir(dup(attempts));
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int folder = is_number(entry->d_name) ? open_folder(attempts, entry->d_name) : -1;

		if (folder < 0)
			continue;
		if (k->chore == COMPRESS)
			compress_attempt(k, folder);
		else
			remove_attempt(k, folder);
		close(folder);
		if (k->chore == REMOVE && k->is_periodic)
			unlinkat(attempts, entry->d_name, AT_REMOVEDIR); /* only when empty */
	}
	if (dir)
		closedir(dir);
}

static void remove_run(const struct log_keeper *k, int run)
{
	for (size_t i = 0; i < COUNT(run_names); i++)
		remove_file(k, run, run_names[i]);
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
		each_attempt(k, attempts);
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
