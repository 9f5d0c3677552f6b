/* SPDX-License-Identifier: MIT */
/* recover.c - each run's folder becomes rows again: its record says what was wanted, its spools are
 * read by the engine as on the day they were written, with the clock of that day. */
#include "daemon/recover/recover.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/run/attempt.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/run/order.h"
#include "common/base/paths.h"
#include "common/base/zst.h"
#include "common/checkpoint/sealed_file.h"
#include "daemon/engine/state.h"
#include "daemon/job/job.h"
#include "daemon/recover/record.h"
#include "daemon/runs/world.h"
#include "slurm/pipe/helper_choice.h"

enum { LOCAL_JOB_BYTES = 16 * 1024 * 1024 };

/* a run's folder */
struct found {
	char *name;
	int64_t created_ms;
};

struct recovery {
	struct lbd *lbd;
	struct ledger *ledger;
	struct engine *engine;
	struct world real;
	int64_t clock_ms; /* of the line that is read */
	char *spool;      /* where a compressed one is unpacked */
	bool is_slurm;    /* runs of which nothing tells go there */
	int64_t runs, live, attempts;
};

/* --- folders ---------------------------------------------------------------------------------- */

static int64_t mtime_ms(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_mtim.tv_sec * 1000LL + st.st_mtim.tv_nsec / 1000000;
}

static bool is_ours(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid == geteuid();
}

static int64_t created_ms(const char *dir)
{
	char *spec = path_join("%s/spec.toml", dir);
	json_t *record = record_load(dir);
	int64_t ms = js_int(record, "created_ms", mtime_ms(spec));

	json_decref(record);
	free(spec);
	return ms;
}

/* A folder of a run of ours: where runs/ is shared there are others'. */
static bool is_run(const char *dir, const char *name)
{
	char *spec = path_join("%s/spec.toml", dir), *record = path_join("%s/record.json", dir);
	bool is = name_check(name, NULL) == 0 && is_ours(dir) &&
		  (file_exists(spec) || file_exists(record));

	free(spec);
	free(record);
	return is;
}

static int older_first(const void *a, const void *b)
{
	const struct found *one = a, *two = b;

	if (one->created_ms != two->created_ms)
		return one->created_ms < two->created_ms ? -1 : 1;
	return strcmp(one->name, two->name);
}

/* The runs below this folder, oldest first; with `most` no more than so many are looked for. */
static struct found *find_runs(const char *folder, size_t most, size_t *count)
{
	DIR *dir = opendir(folder);
	struct found *all = NULL;
	struct dirent *entry;

	*count = 0;
	while (dir && *count < most && (entry = readdir(dir))) {
		char *path = path_join("%s/%s", folder, entry->d_name);

		if (is_run(path, entry->d_name)) {
			all = xrealloc(all, (*count + 1) * sizeof(*all));
			all[(*count)++] = (struct found){ xstrdup(entry->d_name),
							  created_ms(path) };
		}
		free(path);
	}
	if (dir)
		closedir(dir);
	if (all)
		qsort(all, *count, sizeof(*all), older_first);
	return all;
}

static void free_runs(struct found *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(all[i].name);
	free(all);
}

static int by_number(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;

	return (one > two) - (one < two);
}

/* The numbers of attempts that have a folder, lowest first; owned. */
static int64_t *find_attempts(const char *run_dir, size_t *count)
{
	char *folder = path_join("%s/attempts", run_dir);
	DIR *dir = opendir(folder);
	int64_t *all = NULL;
	struct dirent *entry;

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		char *end;
		int64_t number = strtoll(entry->d_name, &end, 10);

		if (number <= 0 || *end)
			continue;
		all = xrealloc(all, (*count + 1) * sizeof(*all));
		all[(*count)++] = number;
	}
	if (dir)
		closedir(dir);
	if (all)
		qsort(all, *count, sizeof(*all), by_number);
	free(folder);
	return all;
}

/* --- the world of that day -------------------------------------------------------------------- */

struct reading {
	struct recovery *r;
	int (*on_line)(const struct spool_line *line, void *arg);
	void *arg;
};

static int64_t replay_wall_ms(void *self)
{
	return ((struct recovery *)self)->clock_ms;
}

static int64_t replay_mono_ms(void *self)
{
	(void)self;
	return clock_mono_ms();
}

static int replay_spec(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	struct recovery *r = self;

	return r->real.spec(r->real.self, run_dir, out, err);
}

static int replay_line(const struct spool_line *line, void *arg)
{
	struct reading *reading = arg;

	reading->r->clock_ms = line->time_ms;
	return reading->on_line(line, reading->arg);
}

static int append_piece(const char *data, size_t len, void *arg)
{
	return fwrite(data, 1, len, arg) == len ? 0 : -1;
}

/* The spool as plain text: itself, or what its compressed form holds; owned. */
static char *plain_spool(struct recovery *r, const char *folder, int64_t offset)
{
	char *path = path_join("%s/spool.jsonl", folder), *packed = path_join("%s.zst", path);
	struct err err = { 0 };
	FILE *f;

	if (!file_exists(path) && file_exists(packed)) {
		f = offset == 0 ? fopen(r->spool, "we") : NULL;
		if (f && zst_read(packed, append_piece, f, &err) < 0)
			log_warn("%s", err.text);
		if (f)
			fclose(f);
		free(path);
		path = xstrdup(r->spool);
	}
	free(packed);
	return path;
}

static int64_t replay_spool(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			    int (*on_line)(const struct spool_line *line, void *arg),
			    void (*on_bad)(int64_t at, const struct err *why, void *arg), void *arg,
			    struct err *err)
{
	struct reading reading = { self, on_line, arg };
	char *folder = job_folder(run), *path = plain_spool(self, folder, *offset);
	int64_t bytes = spool_read(path, offset, max_bytes, replay_line, NULL, &reading, err);

	(void)on_bad;
	free(path);
	free(folder);
	return bytes;
}

/* --- an attempt ------------------------------------------------------------------------------- */

static void read_spool(struct recovery *r, struct run *run, const struct ledger_attempt *a)
{
	struct attempt *now = &run->attempt;

	*now = (struct attempt){ .id = a->id, .number = a->number, .state = ATTEMPT_INTENT };
	snprintf(now->job.token, sizeof(now->job.token), "%s", a->token);
	run->has_attempt = true;
	do
		engine_ingest(r->engine, run);
	while (now->has_more && !r->engine->broken);
}

/* What the files say where there is no record; `row` as the spool left it. */
static void derive_attempt(const char *folder, bool is_live, struct attempt_claim *claim,
			   struct attempt_exit *ended, struct ledger_attempt *row)
{
	bool has_ended = attempt_exit_read(folder, ended, NULL) == 0;

	if (attempt_claim_read(folder, claim, NULL) == 0) {
		row->released_ms = row->started_ms = claim->time_ms;
		row->job_id = strtoll(claim->job_id, NULL, 10);
	}
	if (is_live) {
		/* without a job's number it is looked for by its token */
		row->state = has_ended ? ATTEMPT_RUNNING : ATTEMPT_INTENT;
		row->job_id = has_ended ? row->job_id : 0;
		return;
	}
	row->state = ATTEMPT_ENDED;
	row->cause = has_ended ? ended->cause : CAUSE_LOST;
	row->exit_code = has_ended ? ended->exit_code : -1;
	row->signal = has_ended ? ended->signal : 0;
	row->text = has_ended ? ended->text : "its folder holds no exit record";
	row->ended_ms = has_ended ? ended->time_ms : mtime_ms(folder);
}

/* The record is right about what became of the job, the spool about where it ran. */
static void take_recorded(const struct ledger_attempt *told, struct ledger_attempt *row)
{
	struct ledger_attempt all = *told;

	all.id = row->id;
	if (all.nodes[0] == '\0')
		all.nodes = row->nodes;
	*row = all;
}

static int add_attempt(struct recovery *r, struct run *run, const json_t *record, int64_t number,
		       bool is_live, struct err *err)
{
	char *folder = path_join("%s/attempts/%lld", run->dir, (long long)number);
	char *file = path_join("%s/attempt.json", folder), token[TOKEN_HEX + 1] = "";
	struct ledger_attempt told, row = { .number = number };
	bool is_told = record_attempt(record, number, &told);
	struct attempt_params params = { 0 };
	struct attempt_exit ended;
	struct attempt_claim claim;
	int64_t made_ms = mtime_ms(file);
	int rc = 0;

	if (is_told)
		snprintf(token, sizeof(token), "%s", told.token);
	else if (attempt_params_read(folder, &params, NULL) == 0)
		snprintf(token, sizeof(token), "%s", params.token);
	attempt_params_clear(&params);
	if (token[0])
		rc = ledger_attempt_insert(r->ledger, run->id, number, token, made_ms, &row.id,
					   err);
	if (token[0] && rc == 0) {
		row.token = token;
		read_spool(r, run, &row);
		rc = ledger_attempt_by_token(r->ledger, token, &row, err);
	}
	if (token[0] && rc == 0) {
		if (is_told)
			take_recorded(&told, &row);
		else
			derive_attempt(folder, is_live, &claim, &ended, &row);
		rc = ledger_attempt_restore(r->ledger, &row, err);
	}
	if (token[0] && rc == 0 && row.state == ATTEMPT_ENDED)
		rc = ledger_launch_end_open(r->ledger, row.id, row.cause, row.ended_ms, err);
	r->attempts += token[0] != '\0';
	free(file);
	free(folder);
	return rc;
}

/* --- a run ------------------------------------------------------------------------------------ */

/* Without a record: what the newest attempt's files amount to. What is not plain is left to the
 * engine, which meets a run that runs. */
static void derive_run(const char *dir, int64_t newest, struct attempt_exit *ended,
		       struct attempt_order *order, struct ledger_run *row)
{
	char *folder = path_join("%s/attempts/%lld", dir, (long long)newest);

	if (newest > 0) {
		struct attempt_claim claim;

		row->state = attempt_claim_read(folder, &claim, NULL) == 0 ? RUN_RUNNING
									   : RUN_SUBMITTING;
		if (attempt_order_read(folder, order, NULL) == 0 && order->order >= ORDER_STOP) {
			row->wanted = order->order;
			row->wanted_by = order->by;
			row->wanted_reason = order->text;
		}
	}
	if (newest > 0 && attempt_exit_read(folder, ended, NULL) == 0) {
		bool is_held = ended->switched == ORDER_HOLD;

		if (ended->cause == CAUSE_COMPLETED)
			row->state = RUN_COMPLETED;
		else if (ended->cause == CAUSE_KILLED && !is_held)
			row->state = RUN_KILLED;
		else if (ended->is_final)
			row->state = RUN_FAILED;
		row->cause = ended->cause;
		row->text = ended->text;
		if (run_state_is_final(row->state))
			row->ended_ms = ended->time_ms;
	}
	free(folder);
}

/* Owned. */
static char *own_name(void)
{
	struct account own;
	char *name = xstrdup(account_of(geteuid(), &own) ? own.name : "unknown");

	account_clear(&own);
	return name;
}

static int put_event(struct recovery *r, int64_t run_id, const char *kind, const char *actor,
		     const char *text, int64_t time_ms, struct err *err)
{
	struct ledger_event e = {
		.run_id = run_id, .time_ms = time_ms, .kind = kind, .actor = actor, .text = text
	};

	return ledger_event_put(r->ledger, &e, err);
}

/* Reading the spools counted failures anew: where somebody wrote the count down, that is right. */
static int finish_run(struct recovery *r, const struct run *run, const struct ledger_run *row,
		      const json_t *record, struct err *err)
{
	int64_t failures = record ? row->failures : run->failures;

	if (ledger_run_set_failures(r->ledger, run->id, failures, row->backoff_until_ms, err) < 0)
		return -1;
	if (run_state_is_final(row->state))
		return put_event(r, run->id, run_state_name(row->state), "lbd", row->text,
				 row->ended_ms, err);
	r->live++;
	return 0;
}

static int add_rows(struct recovery *r, struct ledger_run *row, const json_t *record,
		    const int64_t *attempts, size_t count, struct err *err)
{
	bool is_final = run_state_is_final(row->state);
	struct run *run;

	r->clock_ms = row->created_ms;
	if (ledger_run_insert(r->ledger, row, &row->id, err) < 0 ||
	    put_event(r, row->id, "created", row->owner, "", row->created_ms, err) < 0 ||
	    engine_load_run(r->engine, row, true, err) < 0)
		return -1;
	run = engine_find_id(r->engine, row->id);
	for (size_t i = 0; i < count; i++)
		if (add_attempt(r, run, record, attempts[i], !is_final && i + 1 == count, err) < 0)
			return -1;
	if (r->engine->broken)
		return err_set(err, ERR_INTERNAL, "what its files say does not fit the ledger");
	return finish_run(r, run, row, record, err);
}

static int add_run(struct recovery *r, const struct found *found, struct err *err)
{
	char *dir = path_join("%s/%s", r->lbd->config.runs_folder, found->name), *self = own_name();
	json_t *record = record_load(dir);
	struct run_spec spec = { 0 };
	struct attempt_exit ended;
	struct attempt_order order;
	size_t count;
	int64_t *attempts = find_attempts(dir, &count);
	bool has_spec = replay_spec(r, dir, &spec, NULL) == 0;
	bool is_local = has_spec ? spec.scheduler == SPEC_SCHEDULER_LOCAL : !r->is_slurm;
	struct ledger_run row = {
		.name = found->name,
		.owner = self,
		.owner_uid = geteuid(),
		.state = RUN_CREATED,
		.text = "",
		.dir = dir,
		.wanted_by = "",
		.wanted_reason = "",
		.wanted_switch = "",
		.resume_from = "",
		.created_ms = found->created_ms,
		.scheduler = is_local || !r->is_slurm ? "local" : "slurm",
		.run_group = has_spec && spec.group ? spec.group : "",
		.step = -1,
		.target_step = -1,
		.loss = NAN,
		.tokens_per_s = NAN,
		.mfu = NAN,
	};
	int rc;

	if (record)
		record_run(record, &row);
	if (row.state == RUN_STATE_COUNT) {
		json_decref(record);
		record = NULL;
		row.state = RUN_CREATED;
	}
	if (!record)
		derive_run(dir, count ? attempts[count - 1] : 0, &ended, &order, &row);
	rc = add_rows(r, &row, record, attempts, count, err);
	if (rc == 0)
		rc = ledger_commit(r->ledger, err);
	if (rc < 0)
		err_wrap(err, "run %s", found->name);
	r->runs++;
	run_spec_clear(&spec);
	free(attempts);
	json_decref(record);
	free(self);
	free(dir);
	return rc;
}

/* --- the ledger ------------------------------------------------------------------------------- */

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
		struct found *runs = find_runs(config->runs_folder, SIZE_MAX, &count);

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

static void remove_ledger(const char *path)
{
	char *journal = path_join("%s-journal", path);

	unlink(path);
	unlink(journal);
	free(journal);
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
	struct world world = {
		.self = r,
		.wall_ms = replay_wall_ms,
		.mono_ms = replay_mono_ms,
		.spec = replay_spec,
		.spool = replay_spool,
	};
	const struct poll_times times = { .busy_ms = 1000, .idle_ms = 1000, .spool_ms = 1000 };
	size_t count;
	struct found *all = find_runs(r->lbd->config.runs_folder, SIZE_MAX, &count);
	int rc = take_id(r, all, count, id, err);

	r->engine = engine_create(r->ledger, NULL, NULL, &world, &times);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = add_run(r, &all[i], err);
	engine_destroy(r->engine);
	free_runs(all, count);
	if (rc == 0 && put_event(r, 0, "recovered", "lbd",
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
	char *journal = path_join("%s-journal", path),
	     *kept_journal = path_join("%s-journal", kept);
	char *folder = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	int rc = 0;

	if (file_exists(path) && !is_empty(path) && rename(path, kept) < 0)
		rc = err_errno(err, "%s", path);
	if (rc == 0 && file_exists(journal))
		rename(journal, kept_journal);
	if (rc == 0 && rename(made, path) < 0)
		rc = err_errno(err, "%s", made);
	if (rc == 0)
		rc = folder_sync(folder, err);
	free(folder);
	free(journal);
	free(kept_journal);
	free(kept);
	return rc;
}

static bool has_slurm(const struct config *config)
{
	enum slurm_through through = (enum slurm_through)config->slurm_through;
	struct slurm_helper helper;
	bool has = helper_choose(through, &helper, NULL) == 0;

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
