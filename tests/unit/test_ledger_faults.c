/* SPDX-License-Identifier: MIT */
/* test_ledger_faults.c - what was committed stays, whoever is killed, whichever disk is full,
 * whatever is damaged. */
#include "tests/unit/ledger_home.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/mem.h"

/* --- damage ----------------------------------------------------------------------------------- */
static int count_run(const struct ledger_run *run, void *arg)
{
	*(int64_t *)arg += (int64_t)strlen(run->name) + run->state;
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

static void damaged_files_are_refused_or_read(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char page[4096], *data;
	size_t len, at;
	int i, refusals = 0;

	(void)state;
	for (i = 0; i < 30; i++) {
		struct ledger_event e = { .kind = "k",
					  .actor = "lbd",
					  .text = "something happened" };
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
	for (at = 1; at < len; at += 997) { /* cut short */
		write_file(data, at);
		if (opens())
			fail_msg("%zu bytes of %zu are taken for a ledger", at, len);
	}
	for (at = 0; at < len; at += sizeof(page)) { /* a page lost; all are in use */
		char *copy = xmalloc(len);

		memcpy(copy, data, len);
		memset(copy + at, 0xff, sizeof(page));
		write_file(copy, len);
		if (opens())
			fail_msg("nobody misses the page at %zu", at);
		free(copy);
	}
	srand(7);
	for (i = 0; i < 400; i++) { /* bytes changed */
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

/* --- a disk that fails: SQLite's own VFS with an fsync that can be told to fail --------------- */
static bool disk_is_ill;
static sqlite3_io_methods ill_methods[2]; /* of the file, of what is beside it (no locks) */
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
	const int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
	sqlite3_io_methods *methods = &ill_methods[!(flags & SQLITE_OPEN_MAIN_DB)];

	if (rc == SQLITE_OK && (flags & kept)) {
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
	/* whether "during" is there nobody could tell; what is there now was synced anew */
	assert_int_equal(log_bytes(), 0);
	ledger_close(l);
	assert_sound();
}

/* The path leads nowhere that can be looked at (here by ELOOP; ESTALE, ENOTCONN on other days): a
 * commit fails, and the ledger goes on once it can be seen. */
static void a_file_that_cannot_be_seen_is_not_gone(void **state)
{
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	char away[80];

	(void)state;
	add_run(l, "before", RUN_CREATED);
	snprintf(away, sizeof(away), "%s.away", folder);
	assert_int_equal(rename(folder, away), 0);
	assert_int_equal(symlink(folder, folder), 0);
	assert_int_equal(ledger_commit(l, &err), -1);
	assert_non_null(strstr(err.text, "cannot see whether"));
	assert_false(ledger_is_broken(l));
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(rename(away, folder), 0);
	add_run(l, "after", RUN_CREATED);
	commit(l);
	ledger_close(l);
	assert_sound();
	assert_int_equal(ask_int("SELECT count(*) FROM runs"), 1);
}

/* --- kill -9 ---------------------------------------------------------------------------------- */
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(damaged_files_are_refused_or_read),
		TEST(a_full_disk_undoes_the_whole_group),
		TEST(after_a_failed_sync_nothing_is_written),
		TEST(a_file_that_cannot_be_seen_is_not_gone),
		TEST(a_killed_writer_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
