/* SPDX-License-Identifier: MIT */
/* ledger_home.h - what the tests of sql/ share: a ledger in a folder of its own for each test, rows
 * to put into it, and SQLite itself to look at the closed file. */
#ifndef TESTS_UNIT_LEDGER_HOME_H
#define TESTS_UNIT_LEDGER_HOME_H

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/names.h"
#include "sql/ledger.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static char folder[64];
static char file[96];

static inline int set_up(void **state)
{
	struct err err = { 0 };

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_ledger.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/ledger.db", folder);
	return err.code;
}

static inline int tear_down(void **state)
{
	struct err err = { 0 };

	(void)state;
	return folder_remove(folder, &err);
}

/* --- helpers -------------------------------------------------------------------------------- */
static inline struct ledger *open_ledger(void)
{
	struct err err = { 0 };
	struct ledger *l = NULL;

	if (ledger_open(file, &l, &err))
		fail_msg("open: %s", err.text);
	return l;
}

static inline void refused(const char *path, enum err_code code, const char *text)
{
	struct err err = { 0 };
	struct ledger *l = NULL;

	assert_int_equal(ledger_open(path, &l, &err), -1);
	assert_null(l);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.text);
}

static inline void ok(int rc, const struct err *err)
{
	if (rc)
		fail_msg("%s", err->text);
}

static inline void commit(struct ledger *l)
{
	struct err err = { 0 };

	ok(ledger_commit(l, &err), &err);
}

/* SQLite itself on the closed file. */
static inline int raw(const char *sql)
{
	sqlite3 *db;
	int rc;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_close(db);
	return rc;
}

static inline void ask(const char *sql, char *out, size_t size)
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

static inline int64_t ask_int(const char *sql)
{
	char text[64];

	ask(sql, text, sizeof(text));
	return strtoll(text, NULL, 10);
}

static inline void assert_sound(void)
{
	char answer[200];

	ask("PRAGMA integrity_check", answer, sizeof(answer));
	assert_string_equal(answer, "ok");
	assert_int_equal(ask_int("SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

static inline struct ledger_run a_run(const char *name)
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

static inline int64_t add_run(struct ledger *l, const char *name, enum run_state state)
{
	struct ledger_run run = a_run(name);
	struct err err = { 0 };
	int64_t id = 0;

	run.state = state;
	ok(ledger_run_insert(l, &run, &id, &err), &err);
	assert_true(id > 0);
	return id;
}

static inline int64_t add_attempt(struct ledger *l, int64_t run_id, int64_t number)
{
	char token[TOKEN_HEX + 1];
	struct err err = { 0 };
	int64_t id = 0;

	token_draw(token);
	ok(ledger_attempt_insert(l, run_id, number, token, 5, &id, &err), &err);
	return id;
}

static inline int put_metric(struct ledger *l, int64_t run, int64_t attempt, int64_t seq,
			     struct err *err)
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

/* --- the file, and the log beside it, as bytes --- */
static inline int count_event(const struct ledger_event *event, void *arg)
{
	*(int64_t *)arg += (int64_t)strlen(event->text);
	return 0;
}

static inline void write_file(const char *data, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

/* -1: there is none. */
static inline off_t log_bytes(void)
{
	char path[112];
	struct stat st;

	snprintf(path, sizeof(path), "%s-wal", file);
	return stat(path, &st) == 0 ? st.st_size : -1;
}

static inline void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static inline void assert_same_number(double a, double b)
{
	assert_true((isnan(a) && isnan(b)) || a == b);
}

/* What a callback has been shown. */
struct seen {
	int count, stop_at;
	char names[256];
	int64_t ids[8];
};

#endif
