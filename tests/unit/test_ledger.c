/* SPDX-License-Identifier: MIT */
/* test_ledger.c - the ledger as a file: opening it, migrating it, committing, backing it up. */
#include "tests/unit/ledger_home.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/source.h"

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

/* A ledger file as lbd 0.1 made it, without rows. */
static void make_schema_1(void)
{
	char *schema = file_read(source_path("sql/schema/001-initial.sql"), 1 << 20, NULL, NULL);

	assert_non_null(schema);
	assert_int_equal(raw("PRAGMA page_size = 4096"), SQLITE_OK);
	assert_int_equal(raw(schema), SQLITE_OK);
	assert_int_equal(raw("PRAGMA user_version = 1"), SQLITE_OK);
	free(schema);
}

/* The rows stay, what refers to them still does, and the new columns begin empty. */
static void a_ledger_of_schema_1_is_migrated(void **state)
{
	struct ledger *l;
	struct ledger_run run;
	struct err err = { 0 };
	char id[32];

	(void)state;
	make_schema_1();
	assert_int_equal(
		raw("INSERT INTO runs VALUES (5, 'old', 'ada', 1, 'backoff', 'crash', 't', 'slurm', '/d',"
		    " 'run', '', '', 0, 1, 0, 9, 2, 7, 8, 1.5, NULL, NULL);"
		    "INSERT INTO attempts VALUES (3, 5, 1, 'aa', 'ended', 17, 18, 'crash', -1, 11, '', 'n1',"
		    " 1, 2, 3, 4, -1, 50, 6);"
		    "INSERT INTO launches VALUES (3, 1, 'crash', -1, 11, '', 99, 3, 4, -1, 1, 7);"
		    "INSERT INTO events VALUES (1, 5, 1, 'created', 'ada', '', 0);"
		    "INSERT INTO metrics VALUES (4, 5, 3, 2, 1, 8, 3, 0.5, '{}'), (2, 5, 3, 1, 1, 7, 3, 1, '{}');"
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
	assert_int_equal(ask_int("SELECT count(*) FROM attempts WHERE was_waiting"), 1);
	assert_int_equal(ask_int("SELECT step FROM metrics ORDER BY id DESC LIMIT 1"), 8);
	assert_int_equal(ask_int("SELECT count(*) FROM metrics WHERE id = 3 << 32 | seq"), 2);
	assert_int_equal(ask_int("SELECT count(*) FROM nodes"), 1);
	assert_int_equal(ask_int("SELECT count(*) FROM sqlite_schema WHERE name = 'runs_live'"), 1);
}

/* However many points there are: lbd may have little memory. */
static void a_large_ledger_is_migrated_in_little_memory(void **state)
{
	(void)state;
	make_schema_1();
	assert_int_equal(
		raw("CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS"
		    " (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39999) SELECT i FROM n;"
		    "INSERT INTO runs SELECT i, 'r' || i, 'ada', 1, 'failed', 'crash', 't', 'slurm', '/d',"
		    " 'run', '', '', 0, 1, 0, 9, 2, 7, 8, 1.5, NULL, NULL FROM n WHERE i < 20;"
		    "INSERT INTO attempts SELECT i, i, 1, 'a' || i, 'ended', 17, 18, 'crash', -1, 11, '',"
		    " 'n1', 1, 2, 3, 4, -1, 50, 6 FROM n WHERE i < 20;"
		    "INSERT INTO metrics"
		    " SELECT i, i % 20, i % 20, i, 1, i, i, 0.5, hex(zeroblob(200)) FROM n"),
		SQLITE_OK);
	sqlite3_memory_highwater(1);
	ledger_close(open_ledger());
	if (sqlite3_memory_highwater(0) > 10 << 20)
		fail_msg("%lld MiB", (long long)sqlite3_memory_highwater(0) >> 20);
	assert_int_equal(ask_int("SELECT count(*) FROM metrics"), 40000);
	assert_int_equal(ask_int("PRAGMA user_version"), LEDGER_SCHEMA_VERSION);
}

/* A migration that would leave rows without what they refer to does not happen at all. */
static void a_damaged_ledger_of_schema_1_stays_as_it_is(void **state)
{
	(void)state;
	make_schema_1();
	assert_int_equal(raw("PRAGMA foreign_keys = OFF;"
			     "INSERT INTO events VALUES (1, 5, 1, 'created', 'ada', '', 0)"),
			 SQLITE_OK);
	refused(file, ERR_IO, "refer to nothing");
	assert_int_equal(ask_int("PRAGMA user_version"), 1);
}

static void a_newer_schema_is_refused(void **state)
{
	char text[128];

	(void)state;
	ledger_close(open_ledger());
	assert_int_equal(raw("PRAGMA user_version = 1000"), SQLITE_OK);
	snprintf(text, sizeof(text),
		 "written by a newer lbd (schema 1000), this one knows %d: start the newer",
		 LEDGER_SCHEMA_VERSION);
	refused(file, ERR_IO, text);
	assert_int_equal(ask_int("PRAGMA user_version"), 1000);
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

/* --- the words -------------------------------------------------------------------------------- */
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

/* How many words stand in CHECK (column = 'a' OR column = 'b') of the table. */
static unsigned words_in_check(const struct words *w)
{
	char sql[128], text[8192], start[64];
	const char *at, *end;
	unsigned quotes = 0;

	snprintf(sql, sizeof(sql), "SELECT sql FROM sqlite_schema WHERE name = '%s'", w->table);
	ask(sql, text, sizeof(text));
	snprintf(start, sizeof(start), " %s = '", w->column);
	at = strstr(text, start);
	assert_non_null(at);
	end = strchr(at, ')');
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
	ok(ledger_launch_start(l, add_attempt(l, add_run(l, "r", RUN_CREATED), 1), 1, 1, -1, 1,
			       &err),
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

/* --- transactions ----------------------------------------------------------------------------- */
static void only_what_is_committed_stays(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };

	(void)state;
	commit(l); /* nothing open */
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
	assert_int_equal(ledger_backup(l, path, &err), -1); /* not committed yet */
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	commit(l);
	for (round = 0; round < 2; round++) { /* the second one replaces the first */
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

static void add_events(struct ledger *l, int64_t run, int count)
{
	char text[1000];
	struct ledger_event event = { .run_id = run, .kind = "note", .actor = "x", .text = text };
	struct err err = { 0 };

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < count; i++)
		ok(ledger_event_put(l, &event, &err), &err);
}

/* Nobody waits for a large ledger to be copied: it is written meanwhile, and all of that is there,
 * too. */
static void a_copy_is_made_in_pieces(void **state)
{
	enum { PIECE = 16, EVENTS = 1000 };
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING);
	struct ledger_copy *copy;
	struct err err = { 0 };
	int rc, pieces = 0;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/copy", folder);
	add_events(l, run, EVENTS);
	commit(l);
	copy = ledger_copy_begin(l, path, &err); /* given up: nothing stays */
	assert_int_equal(ledger_copy_step(copy, 1, &err), 1);
	ledger_copy_end(copy);
	assert_int_equal(access(path, F_OK), -1);
	copy = ledger_copy_begin(l, path, &err);
	while ((rc = ledger_copy_step(copy, PIECE, &err)) > 0) {
		if (pieces++ == 3) {
			add_events(l, run, 1);
			assert_int_equal(ledger_copy_step(copy, -1, &err), 1); /* not committed */
			commit(l);
		}
	}
	ok(rc, &err);
	assert_true(pieces > EVENTS / 10 / PIECE);
	ledger_copy_end(copy);
	ledger_close(l);
	assert_int_equal(rename(path, file), 0);
	assert_int_equal(ask_int("SELECT count(*) FROM events"), EVENTS + 1);
	assert_sound();
}

/* SQLite refuses any link on the way, and $LB_HOME often lies behind one. */
static void a_copy_behind_a_link(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_copy *copy;
	struct err err = { 0 };
	char link[128], path[160];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(path, sizeof(path), "%s/copy", link);
	assert_int_equal(symlink(folder, link), 0);
	copy = ledger_copy_begin(l, path, &err);
	ok(copy ? 0 : -1, &err);
	ok(ledger_copy_step(copy, -1, &err), &err);
	ledger_copy_end(copy);
	ok(ledger_check_file(path, &err), &err);
	unlink(path);
	assert_int_equal(ledger_check_file(path, &err), -1);
	err_clear(&err);
	assert_null(ledger_copy_begin(l, "/proc/none/copy", &err));
	unlink(link);
	ledger_close(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_new_ledger_is_private_and_keeps_its_id),
		TEST(two_ledgers_differ),
		TEST(odd_paths_are_refused),
		TEST(a_linked_folder_is_fine),
		TEST(a_ledger_of_schema_1_is_migrated),
		TEST(a_large_ledger_is_migrated_in_little_memory),
		TEST(a_damaged_ledger_of_schema_1_stays_as_it_is),
		TEST(a_newer_schema_is_refused),
		TEST(somebody_elses_database_is_refused),
		TEST(a_second_opener_is_refused_at_once),
		TEST(the_constraints_know_the_words_of_the_code),
		TEST(only_what_is_committed_stays),
		TEST(a_backup_is_a_ledger),
		TEST(a_copy_is_made_in_pieces),
		TEST(a_copy_behind_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
