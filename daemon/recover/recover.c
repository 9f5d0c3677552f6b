/* SPDX-License-Identifier: MIT */
/* recover.c - a new ledger from the runs and the newest backup, in the place of the old one. */
#include "daemon/recover/recover.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/zst.h"
#include "common/manifest/sealed_file.h"
#include "daemon/engine/state.h"
#include "daemon/recover/find.h"
#include "daemon/recover/rebuild.h"
#include "daemon/recover/record.h"
#include "daemon/recover/replay.h"
#include "daemon/runs/world.h"
#include "slurm/pipe/helper_choice.h"

enum { LOCAL_JOB_BYTES = 16 * 1024 * 1024 };

static bool is_empty(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? errno == ENOENT : st.st_size == 0;
}

int recover_check(const struct config *config, struct err *err)
{
	char *backup = path_join("%s.bak", config->ledger_path);
	size_t count = 0;
	int rc = 0;

	if (is_empty(config->ledger_path)) {
		struct found *runs = find_runs(config->runs_folder, &count);

		free_runs(runs, count);
		if (count > 0 || file_exists(backup))
			rc = err_set(err, ERR_IO,
				     "%s is %s, but there are %zu runs in %s%s: make it anew "
				     "from them with: lbctl recover",
				     config->ledger_path,
				     file_exists(config->ledger_path) ? "empty" : "missing", count,
				     config->runs_folder,
				     file_exists(backup) ? ", and a backup" : "");
	}
	free(backup);
	return rc;
}

static bool is_sound(const char *path)
{
	struct ledger *ledger = NULL;
	struct err err = { 0 };
	bool sound = !is_empty(path) && ledger_open(path, &ledger, &err) == 0 &&
		     ledger_check(ledger, &err) == 0;

	if (err.code != ERR_NONE)
		log_info("%s", err.text);
	ledger_close(ledger);
	return sound;
}

/* What SQLite keeps beside a file that was not closed in peace: without it the file is another
 * one. */
static const char *const beside[] = { "-wal", "-journal" };
enum { BESIDE = sizeof(beside) / sizeof(beside[0]) };

static void remove_ledger(const char *path)
{
	unlink(path);
	for (int i = 0; i < BESIDE; i++) {
		char *other = path_join("%s%s", path, beside[i]);

		unlink(other);
		free(other);
	}
}

static int keep_beside(const char *path, const char *kept, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < BESIDE; i++) {
		char *from = path_join("%s%s", path, beside[i]);
		char *to = path_join("%s%s", kept, beside[i]);

		if (rename(from, to) < 0 && errno != ENOENT)
			rc = err_errno(err, "%s", from);
		free(from);
		free(to);
	}
	return rc;
}

static int copy_file(const char *from, const char *to)
{
	struct err err = { 0 };
	size_t len = 0;
	char *data = file_read(from, SIZE_MAX / 4, &len, &err);
	int rc = data ? file_write_visible(to, data, len, 0600, &err) : -1;

	free(data);
	return rc;
}

/* A copy of the backup that this lbd can read; owned, NULL = there is none. Its id in `id`. */
static char *open_backup(const char *path, char id[17])
{
	char *backup = path_join("%s.bak", path), *copy = path_join("%s.old", path);
	struct ledger *ledger = NULL;
	struct err err = { 0 };
	bool good;

	remove_ledger(copy);
	good = file_exists(backup) && sealed_file_check(backup, &err) != SEAL_BROKEN &&
	       copy_file(backup, copy) == 0 && ledger_open(copy, &ledger, &err) == 0 &&
	       ledger_check(ledger, &err) == 0;
	if (good)
		snprintf(id, 17, "%s", ledger_id(ledger));
	else if (err.code != ERR_NONE)
		log_warn("the backup is of no use: %s", err.text);
	ledger_close(ledger);
	free(backup);
	if (good)
		return copy;
	remove_ledger(copy);
	free(copy);
	return NULL;
}

/* Those of the local scheduler carry it in their records. */
static void id_of_local_jobs(const char *home, char id[17])
{
	char *folder = path_join("%s/local", home);
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && !id[0] && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		char *path = path_join("%s/%s", folder, entry->d_name);
		json_t *job = len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0
				      ? js_load(path, LOCAL_JOB_BYTES, NULL)
				      : NULL;

		snprintf(id, 17, "%s", js_str(job, "ledger_id", ""));
		json_decref(job);
		free(path);
	}
	if (dir)
		closedir(dir);
	free(folder);
}

/* Jobs in the queue carry the old ledger's id: some run has written it down. */
static int take_id(struct recovery *r, const struct found *all, size_t count, const char *of_backup,
		   struct err *err)
{
	char id[17] = "";

	for (size_t i = count; i-- > 0 && !id[0];) {
		char *dir = path_join("%s/%s", r->lbd->config.runs_folder, all[i].name);
		json_t *record = record_load(dir);

		snprintf(id, sizeof(id), "%s", js_str(record, "ledger", ""));
		json_decref(record);
		free(dir);
	}
	if (!id[0])
		snprintf(id, sizeof(id), "%s", of_backup);
	if (!id[0])
		id_of_local_jobs(r->lbd->config.home, id);
	if (!id[0])
		log_warn("nothing tells the old ledger's id: jobs that live are not known as ours");
	return id[0] ? ledger_set_id(r->ledger, id, err) : 0;
}

static int add_all(struct recovery *r, const char *backup, const char *id, struct err *err)
{
	struct world world;
	const struct poll_times times = { .busy_ms = 1000, .idle_ms = 1000, .spool_ms = 1000 };
	size_t count;
	struct found *all = find_runs(r->lbd->config.runs_folder, &count);
	int rc = take_id(r, all, count, id, err);

	replay_world(r, &world);
	r->engine = engine_create(r->ledger, NULL, NULL, &world, &times);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = rebuild_run(r, &all[i], err);
	engine_destroy(r->engine);
	free_runs(all, count);
	if (rc == 0 && rebuild_event(r, 0, "recovered", "lbd",
				     "the ledger was made anew from the folders of "
				     "the runs",
				     clock_wall_ms(), err) == 0)
		rc = ledger_commit(r->ledger, err);
	return rc == 0 ? ledger_take_over(r->ledger, backup, err) : -1;
}

/* The old one is kept: somebody may still read something from it. */
static int put_in_place(const char *path, const char *made, struct err *err)
{
	char *kept = path_join("%s.damaged-%lld", path, (long long)(clock_wall_ms() / 1000));
	char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	int rc = 0;

	if (file_exists(path) && !is_empty(path) && rename(path, kept) < 0)
		rc = err_errno(err, "%s", path);
	if (rc == 0)
		rc = keep_beside(path, kept, err);
	if (rc == 0 && rename(made, path) < 0)
		rc = err_errno(err, "%s", made);
	if (rc == 0)
		rc = folder_sync(folder, err);
	free(folder);
	free(kept);
	return rc;
}

static bool has_slurm(const struct config *config)
{
	enum slurm_through through = (enum slurm_through)config->slurm_through;
	struct slurm_helper helper;
	bool has = helper_choose(through, NULL, &helper, NULL) == 0;

	helper_choice_clear(&helper);
	return has;
}

int recover_ledger(struct lbd *lbd, char **text, struct err *err)
{
	const char *path = lbd->config.ledger_path;
	char *made = path_join("%s.new", path), *backup, id[17] = "";
	struct recovery r = { .lbd = lbd,
			      .spool = path_join("%s.spool", path),
			      .is_slurm = has_slurm(&lbd->config) };
	int rc = -1;

	*text = NULL;
	if (is_sound(path)) {
		*text = xasprintf(
			"%s is sound: nothing was done; to make it anew from the runs move it "
			"away",
			path);
		rc = 0;
	} else {
		backup = open_backup(path, id);
		remove_ledger(made);
		world_init(&r.real, lbd);
		if (ledger_open(made, &r.ledger, err) == 0)
			rc = add_all(&r, backup, id, err);
		if (rc == 0) /* the file alone is put in place */
			rc = ledger_settle(r.ledger, err);
		ledger_close(r.ledger);
		if (rc == 0)
			rc = put_in_place(path, made, err);
		if (rc == 0)
			*text = xasprintf(
				"%s was made anew: %lld runs (%lld live) with %lld attempts%s; "
				"start lbd with: lbctl daemon start",
				path, (long long)r.runs, (long long)r.live, (long long)r.attempts,
				backup ? ", and what the backup knew besides" : "");
		remove_ledger(made);
		if (backup)
			remove_ledger(backup);
		free(backup);
		unlink(r.spool);
	}
	free(r.spool);
	free(made);
	return rc;
}
