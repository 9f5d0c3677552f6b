/* SPDX-License-Identifier: MIT */
/* test_ledger_log.c - the ledger's write-ahead log: full, cut short, of another file; and none at
 * rest. */
#include "tests/unit/ledger_home.h"

#include <signal.h>

#include "common/base/mem.h"

/* --- a full disk ------------------------------------------------------------------------------ */
/* Room for a part of the group: nothing of it is there, and the next group goes in alone. */
static void a_full_log_undoes_the_whole_group(void **state)
{
	struct ledger *l = open_ledger();
	int64_t id = add_run(l, "r", RUN_RUNNING);
	struct ledger_event event = { .run_id = id, .kind = "k" };
	struct ledger_run run;
	struct err err = { 0 };

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	commit(l);
	limit_file_size((rlim_t)log_bytes() + 4096 + 1000); /* for one page */
	ok(ledger_run_set_wanted(l, id, ORDER_KILL, "bob", "", 1, &err), &err);
	ok(ledger_event_put(l, &event, &err), &err);
	assert_int_equal(ledger_commit(l, &err), -1);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(err.code, ERR_IO);
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

/* All commits fit into the log, and not into the file: that alone is not the whole ledger. */
static void what_the_file_has_no_room_for_is_told(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	int64_t run = add_run(l, "r", RUN_RUNNING), attempt = add_attempt(l, run, 1);
	struct stat st;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 1; i <= 5000; i++)
		ok(put_metric(l, run, attempt, i, &err), &err);
	commit(l);
	ledger_close(l);
	l = open_ledger();
	assert_int_equal(stat(file, &st), 0);
	limit_file_size((rlim_t)st.st_size);
	for (int i = 5001; i <= 5500; i++)
		ok(put_metric(l, run, attempt, i, &err), &err);
	commit(l);
	assert_int_equal(ledger_settle(l, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	assert_non_null(strstr(err.text, "disk full"));
	ledger_close(l);
	limit_file_size(RLIM_INFINITY);
	assert_true(log_bytes() > 0);

	err_clear(&err);
	l = open_ledger();
	ok(ledger_settle(l, &err), &err);
	assert_int_equal(log_bytes(), -1);
	ok(put_metric(l, run, attempt, 5501, &err), &err);
	commit(l);
	ledger_close(l);
	assert_sound();
	assert_int_equal(ask_int("SELECT count(*) FROM metrics"), 5501);
}

static int nobody_may(void *arg, struct err *err)
{
	(void)arg;
	return err_set(err, ERR_LOCKED, "another one writes here");
}

/* --- power ------------------------------------------------------------------------------------ */
enum { GROUPS = 8, CUTS = 60 };

static int64_t count_events(struct ledger *l)
{
	struct err err = { 0 };
	int64_t sum = 0;

	ok(ledger_event_each(l, 0, 0, 1000, count_event, &sum, &err), &err);
	return sum;
}

/* The file and its log as they lie there, in the place of themselves: whoever held them is gone. */
static void put_back(const char *data, size_t len, const char *log, size_t log_len)
{
	char path[112];
	int fd;

	write_file(data, len);
	snprintf(path, sizeof(path), "%s-wal", file);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, log, log_len), (ssize_t)log_len);
	close(fd);
}

/* Wherever the end of the log was lost, or was never written although its length was: all groups
 * before that are there, and nothing of the one that was hit. */
static void a_log_without_its_end_has_all_groups_before_it(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_event event = { .kind = "k", .actor = "lbd", .text = "x" };
	struct err err = { 0 };
	char path[112], *data, *log;
	off_t ends[GROUPS + 1];
	size_t len, log_len, cut;

	(void)state;
	snprintf(path, sizeof(path), "%s-wal", file);
	ends[0] = log_bytes();
	for (int i = 1; i <= GROUPS; i++) {
		ok(ledger_event_put(l, &event, &err), &err);
		commit(l);
		ends[i] = log_bytes();
		assert_true(ends[i] > ends[i - 1]);
	}
	data = file_read(file, 1 << 24, &len, &err);
	log = file_read(path, 1 << 24, &log_len, &err);
	assert_true(data && log);
	ledger_guard(l, nobody_may, NULL);
	ledger_close(l);
	for (int i = 0; i <= 2 * CUTS; i++) {
		int64_t whole = 0;

		cut = log_len * (size_t)(i / 2) / CUTS;
		while (whole < GROUPS && (size_t)ends[whole + 1] <= cut)
			whole++;
		if (i % 2) { /* as long as it was */
			char *zeros = xcalloc(1, log_len + 1);

			memcpy(zeros, log, cut);
			put_back(data, len, zeros, log_len);
			free(zeros);
		} else {
			put_back(data, len, log, cut);
		}
		l = open_ledger();
		assert_int_equal(count_events(l), whole);
		ok(ledger_check(l, &err), &err);
		ledger_close(l);
	}
	free(data);
	free(log);
}

/* Another lbd may have the file by now, and have written to it. */
static void who_may_not_write_closes_without_a_trace(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char *before, *after;
	size_t len, len_after;

	(void)state;
	add_run(l, "r", RUN_RUNNING);
	commit(l);
	before = file_read(file, 1 << 24, &len, &err);
	ledger_guard(l, nobody_may, NULL);
	ledger_close(l);
	after = file_read(file, 1 << 24, &len_after, &err);
	assert_int_equal(len, len_after);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
	assert_true(log_bytes() > 0);
	l = open_ledger();
	assert_int_equal(log_bytes(), 0);
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM runs"), 1);
}

static void put_backup_in_place(const char *backup, struct stat *old)
{
	assert_int_equal(stat(file, old), 0);
	assert_int_equal(rename(backup, file), 0);
}

/* A backup is put in the place of a ledger that somebody has open: what is in the log is of the old
 * one, and SQLite would write those pages over the backup's. */
static void the_log_of_another_file_is_put_aside(void **state)
{
	struct err err = { 0 };
	char backup[112], aside[160];
	struct stat old;

	(void)state;
	snprintf(backup, sizeof(backup), "%s/copy", folder);
	for (int mine = 0; mine <= 1; mine++) {
		struct ledger *l = open_ledger();

		ok(ledger_backup(l, backup, &err), &err);
		add_run(l, "later", RUN_RUNNING);
		commit(l);
		put_backup_in_place(backup, &old);
		assert_int_equal(ledger_run_set_failures(l, 1, 1, 0, NULL), -1);
		assert_true(ledger_is_broken(l));
		if (!mine) /* another lbd works there: its log */
			ledger_guard(l, nobody_may, NULL);
		ledger_close(l);
		snprintf(aside, sizeof(aside), "%s-wal.of-%llu", file,
			 (unsigned long long)old.st_ino);
		assert_int_equal(access(aside, F_OK), mine ? 0 : -1);
		assert_int_equal(log_bytes() > 0, !mine);
		snprintf(aside, sizeof(aside), "%s-wal", file);
		unlink(aside);
	}
	ledger_close(open_ledger());
	assert_sound();
	assert_int_equal(ask_int("SELECT count(*) FROM runs"), 0);
}

/* A file that was moved away may come back: its log waits for it. */
static void the_log_of_a_file_that_is_away_stays(void **state)
{
	struct ledger *l = open_ledger();
	char away[112];

	(void)state;
	add_run(l, "r", RUN_RUNNING);
	commit(l);
	snprintf(away, sizeof(away), "%s/away", folder);
	assert_int_equal(rename(file, away), 0);
	ledger_close(l);
	assert_true(log_bytes() > 0);
	assert_int_equal(rename(away, file), 0);
	ledger_close(open_ledger());
	assert_int_equal(ask_int("SELECT count(*) FROM runs"), 1);
}

/* Then it may be copied, and any SQLite reads it without writing beside it. */
static void at_rest_a_ledger_is_one_plain_file(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char path[112], *data;
	size_t len;

	(void)state;
	add_run(l, "r", RUN_RUNNING);
	commit(l);
	snprintf(path, sizeof(path), "%s/copy", folder);
	ok(ledger_backup(l, path, &err), &err);
	ledger_close(l);
	for (int i = 0; i < 2; i++) {
		data = file_read(i ? path : file, 1 << 24, &len, &err);
		assert_non_null(data);
		assert_int_equal(data[18], 1); /* both versions: a rollback journal's */
		assert_int_equal(data[19], 1);
		free(data);
	}
	assert_int_equal(log_bytes(), -1);
	snprintf(path, sizeof(path), "%s/copy-wal", folder);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_full_log_undoes_the_whole_group),
		TEST(what_the_file_has_no_room_for_is_told),
		TEST(a_log_without_its_end_has_all_groups_before_it),
		TEST(who_may_not_write_closes_without_a_trace),
		TEST(the_log_of_another_file_is_put_aside),
		TEST(the_log_of_a_file_that_is_away_stays),
		TEST(at_rest_a_ledger_is_one_plain_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
