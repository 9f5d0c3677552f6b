/* SPDX-License-Identifier: MIT */
/* The ledger: what goes in comes out, what must not go in does not, and what was committed stays,
 * whoever is killed and whichever disk is full. The files are also looked at with SQLite itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/mem.h"
#include "common/names.h"
#include "sql/ledger.h"
#include "tests/unit/source.h"

static char folder[64];
static char file[96];

static int set_up(void **state)
{
	struct err err = { 0 };

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_ledger.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/ledger.db", folder);
	return err.code;
}

static int tear_down(void **state)
{
	struct err err = { 0 };

	(void)state;
	return folder_remove(folder, &err);
}

/* --- helpers -------------------------------------------------------------------------------- */
static struct ledger *open_ledger(void)
{
	struct err err = { 0 };
	struct ledger *l = NULL;

	if (ledger_open(file, &l, &err))
		fail_msg("open: %s", err.text);
	return l;
}

static void refused(const char *path, enum err_code code, const char *text)
{
	struct err err = { 0 };
	struct ledger *l = NULL;

	assert_int_equal(ledger_open(path, &l, &err), -1);
	assert_null(l);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static void ok(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->text);
}

static void commit(struct ledger *l)
{
	struct err err = { 0 };

	ok(ledger_commit(l, &err), &err);
}

/* SQLite itself on the closed file. */
static int raw(const char *sql)
{
	sqlite3 *db;
	int rc;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_close(db);
	return rc;
}

static void ask(const char *sql, char *out, size_t size)
{
	sqlite3 *db;
	sqlite3_stmt *s = NULL;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	snprintf(out, size, "%s", (const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	sqlite3_close(db);
}

static int64_t ask_int(const char *sql)
{
	char text[64];

	ask(sql, text, sizeof(text));
	return strtoll(text, NULL, 10);
}

static void assert_sound(void)
{
	char answer[200];

	ask("PRAGMA integrity_check", answer, sizeof(answer));
	assert_string_equal(answer, "ok");
	assert_int_equal(ask_int("SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

static struct ledger_run a_run(const char *name)
{
	return (struct ledger_run){
		.name = name,
		.owner = "alice",
		.owner_uid = 1001,
		.state = RUN_QUEUED,
		.cause = CAUSE_HANG,
		.text = "a \"line\" with 'quotes' and \xc3\xa9",
		.scheduler = "slurm",
		.dir = "/runs/x y",
		.wanted = ORDER_STOP,
		.wanted_by = "bob",
		.wanted_reason = "'; DROP TABLE runs; --",
		.wanted_ms = 11,
		.created_ms = 12,
		.ended_ms = 13,
		.backoff_until_ms = 14,
		.failures = 15,
		.step = 16,
		.target_step = INT64_MAX,
		.loss = 1.0 / 3,
		.tokens_per_s = NAN,
		.mfu = -0.25,
	};
}

static int64_t add_run(struct ledger *l, const char *name, enum run_state state)
{
	struct ledger_run run = a_run(name);
	struct err err = { 0 };
	int64_t id = 0;

	run.state = state;
	ok(ledger_run_insert(l, &run, &id, &err), &err);
	assert_true(id > 0);
	return id;
}

static int64_t add_attempt(struct ledger *l, int64_t run_id, int64_t number)
{
	char token[TOKEN_HEX + 1];
	struct err err = { 0 };
	int64_t id = 0;

	token_draw(token);
	ok(ledger_attempt_insert(l, run_id, number, token, 5, &id, &err), &err);
	return id;
}

static int put_metric(struct ledger *l, int64_t run, int64_t attempt, int64_t seq, struct err *err)
{
	struct ledger_metric m = { .run_id = run,
				   .attempt_id = attempt,
				   .seq = seq,
				   .launch = 1,
				   .step = seq * 10,
				   .time_ms = 99,
				   .loss = 0.5,
				   .fields = "{\"lr\":0.1}" };

	return ledger_metric_put(l, &m, err);
}

static void assert_same_number(double a, double b)
{
	assert_true((isnan(a) && isnan(b)) || a == b);
}

/* --- opening -------------------------------------------------------------------------------- */
static void a_new_ledger_is_private_and_keeps_its_id(void **state)
{
	struct ledger *l = open_ledger();
	struct stat st;
	char id[32];

	(void)state;
	snprintf(id, sizeof(id), "%s", ledger_id(l));
	assert_int_equal(strlen(id), 16);
	assert_int_equal(strspn(id, "0123456789abcdef"), 16);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	ledger_close(l);
	l = open_ledger();
	assert_string_equal(ledger_id(l), id);
	ledger_close(l);
	assert_int_equal(ask_int("PRAGMA user_version"), LEDGER_SCHEMA_VERSION);
	ledger_close(NULL);
}

static void two_ledgers_differ(void **state)
{
	struct ledger *l = open_ledger();
	char id[32];

	(void)state;
	snprintf(id, sizeof(id), "%s", ledger_id(l));
	ledger_close(l);
	assert_int_equal(unlink(file), 0);
	l = open_ledger();
	assert_string_not_equal(ledger_id(l), id);
	ledger_close(l);
}

static void odd_paths_are_refused(void **state)
{
	char path[128], other[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/none/ledger.db", folder);
	refused(path, ERR_IO, "No such file");
	refused(folder, ERR_IO, "not a regular file");
	snprintf(path, sizeof(path), "%s/", folder);
	refused(path, ERR_USAGE, "folder");

	ledger_close(open_ledger());
	snprintf(path, sizeof(path), "%s/link", folder);
	assert_int_equal(symlink(file, path), 0);
	refused(path, ERR_IO, "not a regular file");
	snprintf(path, sizeof(path), "%s/dangling", folder);
	assert_int_equal(symlink("nowhere", path), 0);
	refused(path, ERR_IO, "not a regular file");
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(path, ERR_IO, "not a regular file");
	snprintf(other, sizeof(other), "%s/hard", folder);
	assert_int_equal(link(file, other), 0);
	refused(file, ERR_IO, "single name");
}

static void a_linked_folder_is_fine(void **state)
{
	char link_path[96], path[128];
	struct err err = { 0 };
	struct ledger *l;

	(void)state;
	ledger_close(open_ledger());
	snprintf(link_path, sizeof(link_path), "%s/self", folder);
	assert_int_equal(symlink(".", link_path), 0);
	snprintf(path, sizeof(path), "%s/ledger.db", link_path);
	ok(ledger_open(path, &l, &err), &err);
	ledger_close(l);
}

/* As lbd 0.1 of schema 1 left it: the rows stay, what refers to them still does, and the new
 * columns begin empty. */
static void a_ledger_of_schema_1_is_migrated(void **state)
{
	char *schema = file_read(source_path("sql/schema/001-initial.sql"), 1 << 20, NULL, NULL);
	struct ledger *l;
	struct ledger_run run;
	struct err err = { 0 };
	char id[32];

	(void)state;
	assert_non_null(schema);
	assert_int_equal(raw("PRAGMA page_size = 4096"), SQLITE_OK);
	assert_int_equal(raw(schema), SQLITE_OK);
	free(schema);
	assert_int_equal(raw(
		"PRAGMA user_version = 1;"
		"INSERT INTO runs VALUES (5, 'old', 'ada', 1, 'backoff', 'crash', 't', 'slurm', '/d',"
		" 'run', '', '', 0, 1, 0, 9, 2, 7, 8, 1.5, NULL, NULL);"
		"INSERT INTO attempts VALUES (3, 5, 1, 'aa', 'ended', 17, 18, 'crash', -1, 11, '', 'n1',"
		" 1, 2, 3, 4, -1, 50, 6);"
		"INSERT INTO launches VALUES (3, 1, 'crash', -1, 11, '', 99, 3, 4, -1, 1, 7);"
		"INSERT INTO events VALUES (1, 5, 1, 'created', 'ada', '', 0);"
		"INSERT INTO nodes VALUES ('n1', 4, 2, 'crash', 5, 5), ('n[1-2]', 1, 1, 'crash', 5, 5)"),
		SQLITE_OK);
	ask("SELECT value FROM meta WHERE key = 'ledger_id'", id, sizeof(id));
	l = open_ledger();
	assert_string_equal(ledger_id(l), id);
	ok(ledger_run_find(l, "old", &run, &err), &err);
	assert_int_equal(run.id, 5);
	assert_int_equal(run.failures, 2);
	assert_string_equal(run.resume_from, "");
	assert_string_equal(run.run_group, "");
	assert_string_equal(run.wanted_switch, "");
	ok(ledger_run_set_wanted(l, 5, ORDER_HOLD, "bob", "", 1, &err), &err);
	ok(ledger_run_move(l, 5, RUN_BACKOFF, RUN_HELD, CAUSE_CRASH, "", 1, &err), &err);
	commit(l);
	/* references are enforced, before and after */
	assert_int_equal(ledger_attempt_insert(l, 77, 1, "bb", 1, &run.id, &err), -1);
	ledger_close(l);
	assert_int_equal(ask_int("PRAGMA user_version"), LEDGER_SCHEMA_VERSION);
	assert_int_equal(ask_int("SELECT count(*) FROM pragma_foreign_key_check"), 0);
	assert_int_equal(ask_int("SELECT count(*) FROM launches WHERE saved_step = -1"), 1);
	assert_int_equal(ask_int("SELECT count(*) FROM nodes"), 1);
	assert_int_equal(ask_int("SELECT count(*) FROM sqlite_schema WHERE name = 'runs_live'"), 1);
}

/* A migration that would leave rows without what they refer to does not happen at all. */
static void a_damaged_ledger_of_schema_1_stays_as_it_is(void **state)
{
	char *schema = file_read(source_path("sql/schema/001-initial.sql"), 1 << 20, NULL, NULL);

	(void)state;
	assert_non_null(schema);
	assert_int_equal(raw(schema), SQLITE_OK);
	free(schema);
	assert_int_equal(raw("PRAGMA user_version = 1; PRAGMA foreign_keys = OFF;"
			     "INSERT INTO events VALUES (1, 5, 1, 'created', 'ada', '', 0)"), SQLITE_OK);
	refused(file, ERR_INTERNAL, "refer to nothing");
	assert_int_equal(ask_int("PRAGMA user_version"), 1);
}

static void a_newer_schema_is_refused(void **state)
{
	char text[128];

	(void)state;
	ledger_close(open_ledger());
	assert_int_equal(raw("PRAGMA user_version = 7"), SQLITE_OK);
	snprintf(text, sizeof(text), "written by a newer lbd (schema 7), this one knows %d",
		 LEDGER_SCHEMA_VERSION);
	refused(file, ERR_IO, text);
	assert_int_equal(ask_int("PRAGMA user_version"), 7);
}

static void somebody_elses_database_is_refused(void **state)
{
	(void)state;
	assert_int_equal(raw("CREATE TABLE recipes (a)"), SQLITE_OK);
	refused(file, ERR_IO, "not a ledger");
	assert_int_equal(ask_int("SELECT count(*) FROM sqlite_schema"), 1);
}

static void nothing_waits(int read_fd)
{
	char c;

	while (read(read_fd, &c, 1) < 0 && errno == EINTR)
		;
}

static void a_second_opener_is_refused_at_once(void **state)
{
	int ready[2], status;
	struct ledger *l;
	int64_t began;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = { 0 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ledger_open(file, &l, &err) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	nothing_waits(ready[0]);
	close(ready[0]);
	began = clock_mono_ms();
	refused(file, ERR_LOCKED, "held by another process");
	assert_true(clock_mono_ms() - began <= 1000);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	l = open_ledger();
	refused(file, ERR_LOCKED, "held by another process");
	ledger_close(l);
}

/* --- what goes in comes out ------------------------------------------------------------------- */
static void assert_same_run(const struct ledger_run *a, const struct ledger_run *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->owner, b->owner);
	assert_int_equal(a->owner_uid, b->owner_uid);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->cause, b->cause);
	assert_string_equal(a->text, b->text);
	assert_string_equal(a->scheduler, b->scheduler);
	assert_string_equal(a->dir, b->dir);
	assert_int_equal(a->wanted, b->wanted);
	assert_string_equal(a->wanted_by, b->wanted_by);
	assert_string_equal(a->wanted_reason, b->wanted_reason);
	assert_int_equal(a->wanted_ms, b->wanted_ms);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_int_equal(a->backoff_until_ms, b->backoff_until_ms);
	assert_int_equal(a->failures, b->failures);
	assert_int_equal(a->step, b->step);
	assert_int_equal(a->target_step, b->target_step);
	assert_same_number(a->loss, b->loss);
	assert_same_number(a->tokens_per_s, b->tokens_per_s);
	assert_same_number(a->mfu, b->mfu);
}

static void a_run_survives_reopening(void **state)
{
	struct ledger_run want = a_run("brisk-otter-39"), got;
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	int64_t id;

	(void)state;
	ok(ledger_run_insert(l, &want, &id, &err), &err);
	commit(l);
	ledger_close(l);
	l = open_ledger();
	ok(ledger_run_find(l, "brisk-otter-39", &got, &err), &err);
	assert_int_equal(got.id, id);
	assert_same_run(&got, &want);
	assert_int_equal(ledger_run_find(l, "brisk-otter-4", &got, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.text, "brisk-otter-4: no such run");
	ledger_close(l);
	assert_sound();
}

static void missing_strings_are_empty(void **state)
{
	struct ledger_run run = { .name = "bare", .owner = "a", .scheduler = "local" }, got;
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	int64_t id;

	(void)state;
	ok(ledger_run_insert(l, &run, &id, &err), &err);
	ok(ledger_run_find(l, "bare", &got, &err), &err);
	assert_string_equal(got.wanted_by, "");
	assert_string_equal(got.dir, "");
	ledger_close(l);
}

static void a_taken_name_spoils_nothing(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run = a_run("twice"), got;
	struct err err = { 0 };
	int64_t id;

	(void)state;
	add_run(l, "before", RUN_CREATED);
	add_run(l, "twice", RUN_CREATED);
	assert_int_equal(ledger_run_insert(l, &run, &id, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_non_null(strstr(err.text, "twice: there is a run of this name already"));
	add_run(l, "after", RUN_CREATED);
	commit(l);
	err_clear(&err);
	ok(ledger_run_find(l, "before", &got, &err), &err);
	ok(ledger_run_find(l, "after", &got, &err), &err);
	ledger_close(l);
}

static void nonsense_is_refused_alone(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run = a_run("cloud"), got;
	struct err err = { 0 };
	int64_t id;

	(void)state;
	add_run(l, "good", RUN_CREATED);
	run.scheduler = "cloud";
	assert_int_equal(ledger_run_insert(l, &run, &id, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	assert_int_equal(put_metric(l, 1, 77, 1, &err), -1);	/* no such attempt */
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	assert_int_equal(ledger_run_set_failures(l, 99, 1, 0, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	commit(l);
	err_clear(&err);
	ok(ledger_run_find(l, "good", &got, &err), &err);
	ledger_close(l);
}

struct seen {
	int count, stop_at;
	char names[256];
	int64_t ids[8];
};

static int see_run(const struct ledger_run *run, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->names);

	snprintf(seen->names + len, sizeof(seen->names) - len, "%s ", run->name);
	return ++seen->count == seen->stop_at;
}

static void runs_are_listed_newest_first(void **state)
{
	static const struct {
		bool live_only;
		int stop_at;
		const char *names;
		int rc;
	} cases[] = {
		{ false, 0, "e d c b a ", 0 },
		{ true, 0, "e c a ", 0 },
		{ false, 2, "e d ", -1 },
		{ true, 1, "e ", -1 },
	};
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	size_t i;

	(void)state;
	add_run(l, "a", RUN_RUNNING);
	add_run(l, "b", RUN_KILLED);
	add_run(l, "c", RUN_HELD);
	add_run(l, "d", RUN_COMPLETED);
	add_run(l, "e", RUN_CREATED);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen seen = { .stop_at = cases[i].stop_at };

		assert_int_equal(ledger_run_each(l, cases[i].live_only, see_run, &seen, &err),
				 cases[i].rc);
		assert_string_equal(seen.names, cases[i].names);
		assert_int_equal(err.code, ERR_NONE);
	}
	ledger_close(l);
}

/* The daemon decides inside the loop, reads more and writes. */
static int fail_run(const struct ledger_run *run, void *arg)
{
	struct err err = { 0 };
	struct ledger_attempt attempt;
	struct ledger_run again;
	struct ledger *l = arg;

	if (run->state == RUN_QUEUED)
		ok(ledger_run_move(l, run->id, run->state, RUN_FAILED, CAUSE_CRASH, run->name, 3,
				   &err),
		   &err);
	ok(ledger_attempt_newest(l, run->id, &attempt, &err), &err);
	ok(ledger_attempt_started(l, attempt.id, run->name, 4, &err), &err);
	ok(ledger_run_find(l, run->name, &again, &err), &err);
	assert_string_equal(again.name, run->name);
	commit(l);
	return 0;
}

static void a_callback_may_read_write_and_commit(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	char name[16];
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "run-%d", i);
		add_attempt(l, add_run(l, name, i % 2 ? RUN_QUEUED : RUN_RUNNING), 1);
	}
	commit(l);
	ok(ledger_run_each(l, true, fail_run, l, &err), &err);
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "run-%d", i);
		ok(ledger_run_find(l, name, &run, &err), &err);
		assert_int_equal(run.state, i % 2 ? RUN_FAILED : RUN_RUNNING);
	}
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM attempts WHERE state = 'running'"), 50);
}

static void found_strings_may_go_into_the_next_write(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	struct ledger_event event = { .kind = "queued" };

	(void)state;
	add_run(l, "lender", RUN_CREATED);
	commit(l);
	ok(ledger_run_find(l, "lender", &run, &err), &err);
	event.run_id = run.id;
	event.text = run.name;
	event.actor = run.owner;
	ok(ledger_event_put(l, &event, &err), &err);
	commit(l);
	ledger_close(l);
	assert_int_equal(
		ask_int("SELECT count(*) FROM events WHERE text = 'lender' AND actor = 'alice'"), 1);
}

static void every_pair_of_states_moves_as_the_table_says(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	unsigned from, to;
	char name[32];

	(void)state;
	for (from = 0; from < RUN_STATE_COUNT; from++) {
		for (to = 0; to < RUN_STATE_COUNT; to++) {
			bool may = run_state_may_follow((enum run_state)from, (enum run_state)to);
			struct err err = { 0 };
			int64_t id;

			snprintf(name, sizeof(name), "r-%u-%u", from, to);
			id = add_run(l, name, (enum run_state)from);
			assert_int_equal(ledger_run_move(l, id, (enum run_state)from,
							 (enum run_state)to, CAUSE_OOM, "moved", 77,
							 &err),
					 may ? 0 : -1);
			assert_int_equal(err.code, may ? ERR_NONE : ERR_INTERNAL);
			err_clear(&err);
			ok(ledger_run_find(l, name, &run, &err), &err);
			assert_int_equal(run.state, may ? to : from);
			if (!may)
				continue;
			assert_int_equal(run.cause, CAUSE_OOM);
			assert_string_equal(run.text, "moved");
			assert_int_equal(run.ended_ms, run_state_is_final(run.state) ? 77 : 0);
		}
	}
	ledger_close(l);
}

static void a_lost_race_is_seen(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	int64_t id = add_run(l, "raced", RUN_STOPPING);

	(void)state;
	assert_int_equal(ledger_run_move(l, id, RUN_QUEUED, RUN_RUNNING, CAUSE_NONE, "", 1, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	ok(ledger_run_find(l, "raced", &run, &err), &err);
	assert_int_equal(run.state, RUN_STOPPING);
	ledger_close(l);
}

static void orders_failures_and_progress(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	int64_t id = add_run(l, "r", RUN_RUNNING);

	(void)state;
	ok(ledger_run_set_wanted(l, id, ORDER_KILL_NOW, "carol", "late", 21, &err), &err);
	ok(ledger_run_set_failures(l, id, 3, 22, &err), &err);
	ok(ledger_run_set_progress(l, id, 100, 200, 2.5, 1e5, 0.4, &err), &err);
	ok(ledger_run_set_progress(l, id, 101, -1, NAN, NAN, -1, &err), &err);
	ok(ledger_run_find(l, "r", &run, &err), &err);
	assert_int_equal(run.wanted, ORDER_KILL_NOW);
	assert_string_equal(run.wanted_by, "carol");
	assert_string_equal(run.wanted_reason, "late");
	assert_int_equal(run.wanted_ms, 21);
	assert_int_equal(run.failures, 3);
	assert_int_equal(run.backoff_until_ms, 22);
	assert_int_equal(run.step, 101);
	assert_int_equal(run.target_step, 200);
	assert_same_number(run.loss, 2.5);
	assert_same_number(run.tokens_per_s, 1e5);
	assert_same_number(run.mfu, 0.4);
	ok(ledger_run_set_progress(l, id, 102, 200, -0.5, INFINITY, 0, &err), &err);
	ok(ledger_run_find(l, "r", &run, &err), &err);
	assert_same_number(run.loss, -0.5);
	assert_same_number(run.tokens_per_s, INFINITY);
	ledger_close(l);
}

/* --- attempts and launches ---------------------------------------------------------------------- */
static int see_attempt(const struct ledger_attempt *attempt, void *arg)
{
	struct seen *seen = arg;

	seen->ids[seen->count++] = attempt->number;
	return 0;
}

/* Invisible until it is taken, then an attempt like any other; or gone without a trace. */
static void a_spare_is_taken_or_dropped(void **state)
{
	static const char first[] = "0123456789abcdef0123456789abcde0";
	static const char second[] = "0123456789abcdef0123456789abcde1";
	struct ledger *l = open_ledger();
	struct ledger_attempt a;
	struct err err = { 0 };
	int64_t run = add_run(l, "r", RUN_CREATED), id;
	struct seen seen = { 0 };

	(void)state;
	add_attempt(l, run, 1);
	assert_int_equal(ledger_spare_find(l, run, &a, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	ok(ledger_spare_insert(l, run, 2, first, "n3", 5, &id, &err), &err);
	ok(ledger_attempt_set_job(l, id, 4711, 1795000000, &err), &err);
	ok(ledger_attempt_each(l, run, see_attempt, &seen, &err), &err);
	assert_int_equal(seen.count, 1);
	ok(ledger_attempt_newest(l, run, &a, &err), &err);
	assert_int_equal(a.number, 1);
	ok(ledger_spare_drop(l, id, &err), &err);
	assert_int_equal(ledger_spare_drop(l, id, &err), -1);
	err_clear(&err);

	ok(ledger_spare_insert(l, run, 2, second, "n3", 6, &id, &err), &err);
	ok(ledger_attempt_set_job(l, id, 4712, 1795000001, &err), &err);
	commit(l);
	ledger_close(l);
	l = open_ledger();
	ok(ledger_spare_find(l, run, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_string_equal(a.token, second);
	assert_string_equal(a.excluded, "n3");
	assert_int_equal(a.state, ATTEMPT_HELD);
	assert_int_equal(a.job_id, 4712);
	ok(ledger_spare_take(l, id, 9, &err), &err);
	ok(ledger_attempt_newest(l, run, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_int_equal(a.created_ms, 9);
	assert_int_equal(ledger_spare_find(l, run, &a, &err), -1);
	err_clear(&err);
	assert_int_equal(ledger_spare_drop(l, id, &err), -1);
	ledger_close(l);
}

static void an_attempt_from_intent_to_end(void **state)
{
	static const char token[] = "0123456789abcdef0123456789abcdef";
	struct ledger *l = open_ledger();
	struct ledger_attempt a;
	struct err err = { 0 };
	int64_t run = add_run(l, "r", RUN_CREATED), id;
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(ledger_attempt_newest(l, run, &a, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	add_attempt(l, run, 1);
	ok(ledger_attempt_insert(l, run, 2, token, 5, &id, &err), &err);
	ok(ledger_attempt_newest(l, run, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_int_equal(a.state, ATTEMPT_INTENT);
	assert_int_equal(a.exit_code, -1);
	assert_int_equal(a.resumed_from_step, -1);
	ok(ledger_attempt_set_job(l, id, 4711, 1795000000, &err), &err);
	ok(ledger_attempt_released(l, id, 6, &err), &err);
	ok(ledger_attempt_started(l, id, "n1,n2", 7, &err), &err);
	ok(ledger_attempt_started(l, id, "", 8, &err), &err);
	ok(ledger_attempt_set_spool(l, id, 4096, 17, &err), &err);
	ok(ledger_launch_start(l, id, 1, 42, 500, 7, &err), &err);
	ok(ledger_attempt_end(l, id, CAUSE_CRASH, -1, 11, "signal 11", 9, &err), &err);
	commit(l);
	ledger_close(l);

	l = open_ledger();
	ok(ledger_attempt_by_token(l, token, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_int_equal(a.run_id, run);
	assert_int_equal(a.number, 2);
	assert_string_equal(a.token, token);
	assert_int_equal(a.state, ATTEMPT_ENDED);
	assert_int_equal(a.job_id, 4711);
	assert_int_equal(a.submit_time, 1795000000);
	assert_int_equal(a.cause, CAUSE_CRASH);
	assert_int_equal(a.exit_code, -1);
	assert_int_equal(a.signal, 11);
	assert_string_equal(a.text, "signal 11");
	assert_string_equal(a.nodes, "n1,n2");
	assert_int_equal(a.created_ms, 5);
	assert_int_equal(a.released_ms, 6);
	assert_int_equal(a.started_ms, 7);
	assert_int_equal(a.ended_ms, 9);
	assert_int_equal(a.resumed_from_step, 500);
	assert_int_equal(a.spool_offset, 4096);
	assert_int_equal(a.spool_seq, 17);
	ok(ledger_attempt_each(l, run, see_attempt, &seen, &err), &err);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.ids[0], 1);
	assert_int_equal(seen.ids[1], 2);
	assert_int_equal(ledger_attempt_by_token(l, "none", &a, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	ledger_close(l);
}

enum verb { SET_JOB, RELEASE, START, END, VERB_COUNT };

static int attempt_verb(struct ledger *l, enum verb verb, int64_t id, struct err *err)
{
	switch (verb) {
	case SET_JOB:
		return ledger_attempt_set_job(l, id, 1, 2, err);
	case RELEASE:
		return ledger_attempt_released(l, id, 3, err);
	case START:
		return ledger_attempt_started(l, id, "n", 4, err);
	default:
		return ledger_attempt_end(l, id, CAUSE_LOST, -1, 0, "", 5, err);
	}
}

static void attempts_move_forward_only(void **state)
{
	static const bool may[ATTEMPT_STATE_COUNT][VERB_COUNT] = {
		[ATTEMPT_INTENT] = { [SET_JOB] = true, [START] = true, [END] = true },
		[ATTEMPT_HELD] = { [RELEASE] = true, [START] = true, [END] = true },
		[ATTEMPT_QUEUED] = { [START] = true, [END] = true },
		[ATTEMPT_RUNNING] = { [START] = true, [END] = true },
	};
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), number = 0;
	unsigned from, verb;

	(void)state;
	for (from = 0; from < ATTEMPT_STATE_COUNT; from++) {
		for (verb = 0; verb < VERB_COUNT; verb++) {
			int64_t id = add_attempt(l, run, ++number);
			struct err err = { 0 };
			unsigned v;

			for (v = 0; v < from; v++)
				ok(attempt_verb(l, (enum verb)v, id, &err), &err);
			assert_int_equal(attempt_verb(l, (enum verb)verb, id, &err),
					 may[from][verb] ? 0 : -1);
			assert_int_equal(err.code, may[from][verb] ? ERR_NONE : ERR_INTERNAL);
		}
	}
	ledger_close(l);
}

static int see_launch(const struct ledger_launch *launch, void *arg)
{
	struct ledger_launch *out = arg;

	out[launch->number - 1] = *launch;
	out[launch->number - 1].text = NULL;
	if (launch->number == 1)
		assert_string_equal(launch->text, "exit status 3");
	return 0;
}

static void launches_of_an_attempt(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_launch got[3] = { { 0 } };
	struct err err = { 0 };
	int64_t id = add_attempt(l, add_run(l, "r", RUN_RUNNING), 1);

	(void)state;
	ok(ledger_launch_start(l, id, 1, 100, -1, 10, &err), &err);
	ok(ledger_launch_start(l, id, 1, 999, 5, 11, &err), &err);	/* told again: the first stays */
	ok(ledger_launch_steps(l, id, 1, &(struct ledger_steps){ 1, 9, 100, 900 }, &err), &err);
	ok(ledger_launch_steps(l, id, 1, &(struct ledger_steps){ 10, 20, 1000, 2000 }, &err), &err);	/* the next batch */
	ok(ledger_launch_end(l, id, 1, CAUSE_ERROR, 3, 0, "exit status 3", 12, &err), &err);
	ok(ledger_launch_start(l, id, 2, 101, 20, 13, &err), &err);
	ok(ledger_launch_start(l, id, 3, 102, 20, 14, &err), &err);
	ok(ledger_launch_end_open(l, id, CAUSE_LOST, 15, &err), &err);
	ok(ledger_launch_each(l, id, see_launch, got, &err), &err);
	assert_int_equal(got[0].attempt_id, id);
	assert_int_equal(got[0].cause, CAUSE_ERROR);
	assert_int_equal(got[0].exit_code, 3);
	assert_int_equal(got[0].signal, 0);
	assert_int_equal(got[0].pid, 100);
	assert_int_equal(got[0].started_ms, 10);
	assert_int_equal(got[0].ended_ms, 12);
	assert_int_equal(got[0].resumed_from_step, -1);
	assert_int_equal(got[0].first_step, 1);
	assert_int_equal(got[0].last_step, 20);
	assert_int_equal(got[1].cause, CAUSE_LOST);
	assert_int_equal(got[1].ended_ms, 15);
	assert_int_equal(got[1].resumed_from_step, 20);
	assert_int_equal(got[1].first_step, -1);
	assert_int_equal(got[2].cause, CAUSE_LOST);
	assert_int_equal(ledger_launch_end(l, id, 4, CAUSE_ERROR, 1, 0, "", 1, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	ledger_close(l);
}

/* --- checkpoints, metrics, events, nodes ---------------------------------------------------------- */
static void the_newest_valid_checkpoint(void **state)
{
	static const struct {
		int64_t step;
		const char *path;
		bool valid;
		int64_t newest;		/* step of the newest, this one put */
	} cases[] = {
		{ 10, "a", false, 10 }, { 20, "b", false, 20 }, { 5, "c", true, 5 },
		{ 30, "d", false, 5 },	{ 10, "a", true, 10 },	{ 10, "a", false, 5 },
		{ 5, "c", false, 30 },
	};
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING);
	struct ledger_checkpoint c;
	struct err err = { 0 };
	size_t i;

	(void)state;
	assert_int_equal(ledger_checkpoint_newest(l, run, &c, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c = (struct ledger_checkpoint){ .run_id = run, .step = cases[i].step, .attempt = 2,
						.path = cases[i].path, .valid = cases[i].valid,
						.text = "why", .time_ms = 8 };
		ok(ledger_checkpoint_put(l, &c, &err), &err);
		ok(ledger_checkpoint_newest(l, run, &c, &err), &err);
		assert_int_equal(c.step, cases[i].newest);
	}
	assert_string_equal(c.path, "d");
	assert_string_equal(c.text, "why");
	assert_int_equal(c.attempt, 2);
	assert_int_equal(c.time_ms, 8);
	assert_false(c.valid);
	commit(l);
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM checkpoints"), 4);
}

static int see_metric(const struct ledger_metric *m, void *arg)
{
	struct seen *seen = arg;

	assert_int_equal(m->launch, 1);
	assert_int_equal(m->step, m->seq * 10);
	assert_int_equal(m->time_ms, 99);
	assert_same_number(m->loss, 0.5);
	assert_string_equal(m->fields, "{\"lr\":0.1}");
	seen->ids[seen->count++] = m->id;
	return seen->count == seen->stop_at;
}

static void a_metric_counts_once(void **state)
{
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), other = add_run(l, "o", RUN_RUNNING), last;
	int64_t a1 = add_attempt(l, run, 1), a2 = add_attempt(l, run, 2);
	int64_t b1 = add_attempt(l, other, 1);
	struct ledger_metric again = { .run_id = run, .attempt_id = a1, .seq = 1, .step = 999,
				       .fields = "{\"late\":1}" };
	struct seen seen = { 0 }, rest = { 0 };
	struct err err = { 0 };

	(void)state;
	ok(ledger_metric_last(l, run, &last, &err), &err);
	assert_int_equal(last, 0);
	ok(put_metric(l, run, a1, 1, &err), &err);
	ok(put_metric(l, other, b1, 1, &err), &err);
	ok(put_metric(l, run, a1, 2, &err), &err);
	ok(put_metric(l, run, a1, 2, &err), &err);
	commit(l);
	ok(ledger_metric_put(l, &again, &err), &err);
	ok(put_metric(l, run, a2, 1, &err), &err);
	commit(l);
	ok(ledger_metric_each(l, run, 0, 100, see_metric, &seen, &err), &err);
	assert_int_equal(seen.count, 3);
	assert_true(seen.ids[0] < seen.ids[1] && seen.ids[1] < seen.ids[2]);
	ok(ledger_metric_each(l, run, seen.ids[0], 1, see_metric, &rest, &err), &err);
	assert_int_equal(rest.count, 1);
	assert_int_equal(rest.ids[0], seen.ids[1]);
	ok(ledger_metric_last(l, run, &last, &err), &err);
	assert_int_equal(last, seen.ids[2]);
	rest = (struct seen){ .stop_at = 1 };
	assert_int_equal(ledger_metric_each(l, run, 0, 100, see_metric, &rest, &err), -1);
	assert_int_equal(err.code, ERR_NONE);
	ledger_close(l);
}

static void a_metric_without_loss(void **state)
{
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), attempt = add_attempt(l, run, 1);
	struct ledger_metric m = { .run_id = run, .attempt_id = attempt, .seq = 1, .loss = NAN,
				   .fields = "{}" };
	struct err err = { 0 };

	(void)state;
	ok(ledger_metric_put(l, &m, &err), &err);
	commit(l);
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM metrics WHERE loss IS NULL"), 1);
}

static int see_event(const struct ledger_event *e, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->names);

	assert_int_equal(e->time_ms, 1234);
	assert_string_equal(e->actor, "lbd");
	assert_string_equal(e->text, "text");
	assert_int_equal(e->attempt, 3);
	seen->ids[seen->count++] = e->id;
	snprintf(seen->names + len, sizeof(seen->names) - len, "%s:%lld ", e->kind,
		 (long long)e->run_id);
	return 0;
}

static void events_of_one_run_and_of_all(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_event e = { .time_ms = 1234, .actor = "lbd", .text = "text", .attempt = 3 };
	struct seen all = { 0 }, one = { 0 }, rest = { 0 };
	struct err err = { 0 };

	(void)state;
	add_run(l, "a", RUN_RUNNING);
	add_run(l, "b", RUN_RUNNING);
	e.kind = "started";
	ok(ledger_event_put(l, &e, &err), &err);
	e.kind = "queued";
	for (e.run_id = 1; e.run_id <= 2; e.run_id++)
		ok(ledger_event_put(l, &e, &err), &err);
	e.kind = "running";
	e.run_id = 1;
	ok(ledger_event_put(l, &e, &err), &err);
	ok(ledger_event_each(l, 0, 0, 100, see_event, &all, &err), &err);
	assert_string_equal(all.names, "started:0 queued:1 queued:2 running:1 ");
	ok(ledger_event_each(l, 1, 0, 100, see_event, &one, &err), &err);
	assert_string_equal(one.names, "queued:1 running:1 ");
	ok(ledger_event_each(l, 0, all.ids[1], 1, see_event, &rest, &err), &err);
	assert_string_equal(rest.names, "queued:2 ");
	e.run_id = 99;
	assert_int_equal(ledger_event_put(l, &e, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	ledger_close(l);
}

static void nodes_are_remembered(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char row[96];
	unsigned cause;

	(void)state;
	for (cause = CAUSE_COMPLETED; cause < CAUSE_COUNT; cause++)
		ok(ledger_node_attempt_ended(l, "n1", (enum cause)cause, cause, &err), &err);
	commit(l);
	ledger_close(l);
	ask("SELECT format('%d %d %s %d %d', attempts, suspect, last_cause, last_ms, suspect_ms)"
	    " FROM nodes WHERE name = 'n1'",
	    row, sizeof(row));
	assert_string_equal(row, "12 4 lost 12 9");
}

/* --- the words ------------------------------------------------------------------------------------ */
static const char *state_word(unsigned i)
{
	return run_state_name((enum run_state)i);
}
static const char *attempt_word(unsigned i)
{
	return attempt_state_name((enum attempt_state)i);
}
static const char *cause_word(unsigned i)
{
	return cause_name((enum cause)i);
}
static const char *order_word(unsigned i)
{
	return run_order_name((enum run_order)i);
}

static const struct words {
	const char *table, *column;
	unsigned count;
	const char *(*word)(unsigned i);
} words[] = {
	{ "runs", "state", RUN_STATE_COUNT, state_word },
	{ "runs", "cause", CAUSE_COUNT, cause_word },
	{ "runs", "wanted", ORDER_COUNT, order_word },
	{ "attempts", "state", ATTEMPT_STATE_COUNT, attempt_word },
	{ "attempts", "cause", CAUSE_COUNT, cause_word },
	{ "launches", "cause", CAUSE_COUNT, cause_word },
	{ "nodes", "last_cause", CAUSE_COUNT, cause_word },
};

/* How many words stand in CHECK (column IN ('a', 'b')) of the table. */
static unsigned words_in_check(const struct words *w)
{
	char sql[128], text[4096], start[64];
	const char *at, *end;
	unsigned quotes = 0;

	snprintf(sql, sizeof(sql), "SELECT sql FROM sqlite_schema WHERE name = '%s'", w->table);
	ask(sql, text, sizeof(text));
	snprintf(start, sizeof(start), "(%s IN (", w->column);
	at = strstr(text, start);
	assert_non_null(at);
	end = strstr(at, "))");
	assert_non_null(end);
	for (; at < end; at++)
		quotes += *at == '\'';
	return quotes / 2;
}

static void the_constraints_know_the_words_of_the_code(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char sql[128];
	size_t i;
	unsigned n;

	(void)state;
	ok(ledger_launch_start(l, add_attempt(l, add_run(l, "r", RUN_CREATED), 1), 1, 1, -1, 1, &err),
	   &err);
	ok(ledger_node_attempt_ended(l, "n", CAUSE_LOST, 1, &err), &err);
	commit(l);
	ledger_close(l);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct words *w = &words[i];

		assert_int_equal(words_in_check(w), w->count);
		for (n = 0; n < w->count; n++) {
			snprintf(sql, sizeof(sql), "UPDATE %s SET %s = '%s'", w->table, w->column,
				 w->word(n));
			assert_int_equal(raw(sql), SQLITE_OK);
		}
		snprintf(sql, sizeof(sql), "UPDATE %s SET %s = 'asleep'", w->table, w->column);
		assert_int_equal(raw(sql), SQLITE_CONSTRAINT);
	}
}

/* --- transactions --------------------------------------------------------------------------------- */
static void only_what_is_committed_stays(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };

	(void)state;
	commit(l);			/* nothing open */
	ledger_rollback(l);
	add_run(l, "kept", RUN_CREATED);
	commit(l);
	add_run(l, "rolled-back", RUN_CREATED);
	ledger_rollback(l);
	assert_int_equal(ledger_run_find(l, "rolled-back", &run, &err), -1);
	add_run(l, "never-committed", RUN_CREATED);
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM runs"), 1);
	assert_int_equal(ask_int("SELECT count(*) FROM runs WHERE name = 'kept'"), 1);
}

static void a_backup_is_a_ledger(void **state)
{
	struct ledger *l = open_ledger(), *copy;
	struct err err = { 0 };
	struct ledger_run run;
	char path[128], id[32];
	struct stat st;
	int round;

	(void)state;
	snprintf(path, sizeof(path), "%s/ledger.bak", folder);
	snprintf(id, sizeof(id), "%s", ledger_id(l));
	add_run(l, "saved", RUN_RUNNING);
	assert_int_equal(ledger_backup(l, path, &err), -1);	/* not committed yet */
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	commit(l);
	for (round = 0; round < 2; round++) {	/* the second one replaces the first */
		ok(ledger_backup(l, path, &err), &err);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		ok(ledger_open(path, &copy, &err), &err);
		assert_string_equal(ledger_id(copy), id);
		ok(ledger_run_find(copy, round ? "later" : "saved", &run, &err), &err);
		ledger_close(copy);
		add_run(l, round ? "even-later" : "later", RUN_RUNNING);
		commit(l);
	}
	assert_int_equal(ledger_backup(l, "/proc/none/ledger.bak", &err), -1);
	assert_int_equal(err.code, ERR_IO);
	ledger_close(l);
	assert_sound();
}

/* --- damage --------------------------------------------------------------------------------------- */
static int count_run(const struct ledger_run *run, void *arg)
{
	*(int64_t *)arg += (int64_t)strlen(run->name) + run->state;
	return 0;
}

static int count_event(const struct ledger_event *event, void *arg)
{
	*(int64_t *)arg += (int64_t)strlen(event->text);
	return 0;
}

/* Whatever is in the file: refused with a message, or read from end to end. Never a crash. */
static bool opens(void)
{
	struct err err = { 0 };
	struct ledger *l;
	int64_t sum = 0;

	if (ledger_open(file, &l, &err)) {
		assert_true(err.code == ERR_IO || err.code == ERR_INTERNAL);
		assert_true(err.text[0] != '\0');
		return false;
	}
	if (ledger_run_each(l, false, count_run, &sum, &err) ||
	    ledger_event_each(l, 0, 0, 1000, count_event, &sum, &err))
		assert_int_not_equal(err.code, ERR_NONE);
	ledger_close(l);
	return true;
}

static void write_file(const char *data, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static void damaged_files_are_refused_or_read(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char page[4096], *data;
	size_t len, at;
	int i, refusals = 0;

	(void)state;
	for (i = 0; i < 30; i++) {
		struct ledger_event e = { .kind = "k", .actor = "lbd", .text = "something happened" };
		char name[16];

		snprintf(name, sizeof(name), "run-%d", i);
		e.run_id = add_run(l, name, RUN_COMPLETED);
		ok(ledger_event_put(l, &e, &err), &err);
	}
	commit(l);
	ledger_close(l);
	data = file_read(file, 1 << 24, &len, &err);
	assert_non_null(data);

	write_file("#!/bin/sh\n", 10);
	refused(file, ERR_IO, "damaged or no ledger");
	memset(page, 'x', sizeof(page));
	write_file(page, sizeof(page));
	refused(file, ERR_IO, "damaged or no ledger");
	for (at = 1; at < len; at += 997) {	/* cut short */
		write_file(data, at);
		if (opens())
			fail_msg("%zu bytes of %zu are taken for a ledger", at, len);
	}
	for (at = 0; at < len; at += sizeof(page)) {	/* a page lost; all are in use */
		char *copy = xmalloc(len);

		memcpy(copy, data, len);
		memset(copy + at, 0xff, sizeof(page));
		write_file(copy, len);
		if (opens())
			fail_msg("nobody misses the page at %zu", at);
		free(copy);
	}
	srand(7);
	for (i = 0; i < 400; i++) {		/* bytes changed */
		int k, changed = 1 + rand() % 20;
		char *copy = xmalloc(len);

		memcpy(copy, data, len);
		for (k = 0; k < changed; k++)
			copy[(size_t)rand() % (i % 2 ? 4096 : len)] = (char)rand();
		write_file(copy, len);
		refusals += !opens();
		free(copy);
	}
	assert_true(refusals > 50);
	write_file(data, len);
	assert_true(opens());
	free(data);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A file-size limit stands for a full disk and a used-up quota alike. One round with transactions
 * that fit the page cache, one with a transaction far bigger than it. */
static void a_full_disk_undoes_the_whole_group(void **state)
{
	static const int rows_per_commit[] = { 50, 60000 };
	size_t i;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < sizeof(rows_per_commit) / sizeof(rows_per_commit[0]); i++) {
		struct ledger *l = open_ledger();
		int64_t run = add_run(l, i ? "r1" : "r0", RUN_RUNNING), seq = 0, kept = 0, last;
		int64_t attempt = add_attempt(l, run, 1);
		struct err err = { 0 };
		struct stat st;
		char sql[96];
		int n, rc = 0;

		commit(l);
		assert_int_equal(stat(file, &st), 0);
		limit_file_size((rlim_t)st.st_size + 200000);
		while (!rc) {
			ok(ledger_run_set_failures(l, run, seq, 0, &err), &err);
			for (n = 0; n < rows_per_commit[i] && !rc; n++)
				rc = put_metric(l, run, attempt, ++seq, &err);
			rc = ledger_commit(l, rc ? NULL : &err);
			kept = rc ? kept : seq;
		}
		limit_file_size(RLIM_INFINITY);
		assert_int_equal(err.code, ERR_IO);
		if (!strstr(err.text, "disk full"))
			fail_msg("%s", err.text);
		err_clear(&err);

		/* The ledger goes on where the last good commit left it. */
		ok(ledger_metric_last(l, run, &last, &err), &err);
		ok(put_metric(l, run, attempt, seq + 1, &err), &err);
		commit(l);
		ledger_close(l);
		assert_sound();
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM metrics WHERE run_id = %lld",
			 (long long)run);
		assert_int_equal(ask_int(sql), kept + 1);
		assert_true(rows_per_commit[i] > 1000 || kept > 0);
	}
}

/* Full in the middle of a group: what came before is gone, what comes after must not go in alone. */
static void a_full_journal_undoes_the_whole_group(void **state)
{
	struct ledger *l = open_ledger();
	int64_t id = add_run(l, "r", RUN_RUNNING);
	struct ledger_event event = { .run_id = id, .kind = "k" };
	struct ledger_run run;
	struct err err = { 0 };

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	commit(l);
	limit_file_size(4096 + 1000);	/* the journal has room for one page */
	ok(ledger_run_set_wanted(l, id, ORDER_KILL, "bob", "", 1, &err), &err);
	assert_int_equal(ledger_event_put(l, &event, &err), -1);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(ledger_run_set_failures(l, id, 3, 0, NULL), -1);
	assert_int_equal(ledger_commit(l, NULL), -1);

	err_clear(&err);
	ok(ledger_event_put(l, &event, &err), &err);
	commit(l);
	ok(ledger_run_find(l, "r", &run, &err), &err);
	assert_int_equal(run.wanted, ORDER_STOP);
	assert_int_equal(run.failures, 15);
	ledger_close(l);
	assert_sound();
	assert_int_equal(ask_int("SELECT count(*) FROM events"), 1);
}

/* --- a disk that fails: SQLite's own VFS with an fsync that can be told to fail ---------------------- */
static bool disk_is_ill;
static sqlite3_io_methods ill_methods[2];	/* of the file, of its journal (no locks) */
static int (*good_sync)(sqlite3_file *f, int flags);
static int (*good_open)(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out);

static int ill_sync(sqlite3_file *f, int flags)
{
	if (!disk_is_ill)
		return good_sync(f, flags);
	errno = EIO;
	return SQLITE_IOERR_FSYNC;
}

static int ill_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
	int rc = good_open(vfs, name, f, flags, out);
	sqlite3_io_methods *methods = &ill_methods[!(flags & SQLITE_OPEN_MAIN_DB)];

	if (rc == SQLITE_OK && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL))) {
		good_sync = f->pMethods->xSync;
		*methods = *f->pMethods;
		methods->xSync = ill_sync;
		f->pMethods = methods;
	}
	return rc;
}

static void after_a_failed_sync_nothing_is_written(void **state)
{
	sqlite3_vfs *usual, ill;
	struct ledger *l;
	struct ledger_run run;
	struct err err = { 0 };

	(void)state;
	sqlite3_initialize();
	usual = sqlite3_vfs_find(NULL);
	ill = *usual;
	good_open = usual->xOpen;
	ill.xOpen = ill_open;
	ill.zName = "ill";
	assert_int_equal(sqlite3_vfs_register(&ill, 1), SQLITE_OK);

	l = open_ledger();
	add_run(l, "before", RUN_CREATED);
	commit(l);
	add_run(l, "during", RUN_CREATED);
	disk_is_ill = true;
	assert_int_equal(ledger_commit(l, &err), -1);
	disk_is_ill = false;
	assert_int_equal(err.code, ERR_IO);
	assert_non_null(strstr(err.text, "restart lbd"));
	assert_int_equal(ledger_run_set_failures(l, 1, 1, 0, NULL), -1);
	assert_int_equal(ledger_run_find(l, "before", &run, NULL), -1);
	assert_int_equal(ledger_commit(l, NULL), -1);
	ledger_close(l);
	sqlite3_vfs_unregister(&ill);

	l = open_ledger();
	err_clear(&err);
	ok(ledger_run_find(l, "before", &run, &err), &err);
	assert_int_equal(ledger_run_find(l, "during", &run, NULL), -1);
	ledger_close(l);
	assert_sound();
}

/* --- kill -9 -------------------------------------------------------------------------------------- */
/* Commits groups of ten metrics and an event, and says so after each. */
static void write_for_ever(int fd, int64_t round)
{
	struct err err = { 0 };
	struct ledger *l;
	char name[32];
	int64_t run, attempt, group, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ledger_open(file, &l, &err))
		_exit(1);
	snprintf(name, sizeof(name), "round-%lld", (long long)round);
	run = add_run(l, name, RUN_RUNNING);
	attempt = add_attempt(l, run, 1);
	for (group = 1;; group++) {
		struct ledger_event e = { .run_id = run, .kind = "group", .attempt = group };

		for (i = 1; i <= 10; i++)
			if (put_metric(l, run, attempt, group * 10 + i, &err))
				_exit(1);
		if (ledger_event_put(l, &e, &err) ||
		    ledger_run_set_progress(l, run, group, -1, NAN, NAN, NAN, &err) ||
		    ledger_commit(l, &err) || write(fd, &group, sizeof(group)) != sizeof(group))
			_exit(1);
	}
}

/* Lets it acknowledge so many groups, then kills it some time into the next ones. */
static int64_t crash_after(int groups, int64_t microseconds, int64_t round)
{
	struct timespec pause = { .tv_nsec = microseconds * 1000 };
	int64_t group, last = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_for_ever(fds[1], round);
	close(fds[1]);
	while (groups-- > 0 && read(fds[0], &group, sizeof(group)) == sizeof(group))
		last = group;
	nanosleep(&pause, NULL);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(fds[0], &group, sizeof(group)) == sizeof(group))
		last = group;
	close(fds[0]);
	return last;
}

static void a_killed_writer_loses_nothing(void **state)
{
	enum { ROUNDS = 40 };
	int64_t acknowledged, round;
	char sql[256];

	(void)state;
	srand(11);
	for (round = 0; round < ROUNDS; round++) {
		int64_t groups;

		acknowledged = crash_after(rand() % 6, rand() % 4000, round);
		ledger_close(open_ledger());
		assert_sound();
		snprintf(sql, sizeof(sql),
			 "SELECT coalesce(max(step), 0) FROM runs WHERE name = 'round-%lld'",
			 (long long)round);
		groups = ask_int(sql);
		/* The run's row has step 16 before its first group changes it. */
		if (acknowledged == 0)
			continue;
		assert_true(groups == acknowledged || groups == acknowledged + 1);
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM metrics m JOIN runs r ON r.id = m.run_id"
			 " WHERE r.name = 'round-%lld'",
			 (long long)round);
		assert_int_equal(ask_int(sql), groups * 10);
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) FROM events e JOIN runs r ON r.id = e.run_id"
			 " WHERE r.name = 'round-%lld'",
			 (long long)round);
		assert_int_equal(ask_int(sql), groups);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_new_ledger_is_private_and_keeps_its_id),
		TEST(two_ledgers_differ),
		TEST(odd_paths_are_refused),
		TEST(a_linked_folder_is_fine),
		TEST(a_ledger_of_schema_1_is_migrated),
		TEST(a_damaged_ledger_of_schema_1_stays_as_it_is),
		TEST(a_newer_schema_is_refused),
		TEST(somebody_elses_database_is_refused),
		TEST(a_second_opener_is_refused_at_once),
		TEST(a_run_survives_reopening),
		TEST(missing_strings_are_empty),
		TEST(a_taken_name_spoils_nothing),
		TEST(nonsense_is_refused_alone),
		TEST(runs_are_listed_newest_first),
		TEST(a_callback_may_read_write_and_commit),
		TEST(found_strings_may_go_into_the_next_write),
		TEST(every_pair_of_states_moves_as_the_table_says),
		TEST(a_lost_race_is_seen),
		TEST(orders_failures_and_progress),
		TEST(an_attempt_from_intent_to_end),
		TEST(a_spare_is_taken_or_dropped),
		TEST(attempts_move_forward_only),
		TEST(launches_of_an_attempt),
		TEST(the_newest_valid_checkpoint),
		TEST(a_metric_counts_once),
		TEST(a_metric_without_loss),
		TEST(events_of_one_run_and_of_all),
		TEST(nodes_are_remembered),
		TEST(the_constraints_know_the_words_of_the_code),
		TEST(only_what_is_committed_stays),
		TEST(a_backup_is_a_ledger),
		TEST(damaged_files_are_refused_or_read),
		TEST(a_full_disk_undoes_the_whole_group),
		TEST(a_full_journal_undoes_the_whole_group),
		TEST(after_a_failed_sync_nothing_is_written),
		TEST(a_killed_writer_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
