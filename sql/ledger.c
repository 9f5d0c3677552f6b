/* SPDX-License-Identifier: MIT */
/* ledger.c - opening, checking, migrating and committing. The queries are in ledger_*.c beside this
 * file. What a failure means decides much of the code here: ledger_errors.c. */
#define QUERY_TEXTS
#include "sql/ledger_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

_Static_assert(sizeof(migrations) / sizeof(migrations[0]) == LEDGER_SCHEMA_VERSION + 1,
	       "one file in sql/schema per version");

enum {
	APPLICATION_ID = 1818387559, /* as in schema/001-initial.sql */
	PAGE_BYTES = 4096,
	LOCK_WAIT_MS = 500,            /* a reader may have the file for a moment */
	CHECK_ALWAYS_BYTES = 32 << 20, /* a check does some 140 MB/s */
};

/* The write-ahead log is written over and over in place: a file whose length does not change is
 * synced several times as fast. What a large group made of it is cut back.
 *
 * The pages of a whole group stay in the cache until the commit, and it has room for others
 * besides: else each line read from a spool would read the rows of its run and attempt from the
 * file again. */
static const char session[] = "PRAGMA synchronous = FULL;"
			      "PRAGMA cache_size = -4096;"
			      "PRAGMA journal_size_limit = 4194304;"
			      "PRAGMA trusted_schema = OFF;"
			      "PRAGMA cache_spill = OFF;"
			      "PRAGMA temp_store = MEMORY;";

/* --- transactions --------------------------------------------------------------------------- */
static int run_text(struct ledger *l, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(l->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : ledger_fail(l, rc, err);
}

void ledger_rollback(struct ledger *l)
{
	release_borrowed(l);
	l->touched_count = l->changed_count; /* what is committed is told all the same */
	if (!sqlite3_get_autocommit(l->db))
		sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
	if (l->lost.code == ERR_NONE || l->broken)
		return;
	err_clear(&l->lost);
	/* where no room is left, the log's own may do for what comes next */
	if (ledger_ask_guard(l, NULL) == 0)
		ledger_wal_checkpoint(l);
	else if (!l->broken)
		err_clear(&l->lost);
}

static int commit(struct ledger *l, struct err *err)
{
	int rc;

	if (ledger_ask_guard(l, err) < 0 || failpoint(FP_LEDGER_COMMIT, err) < 0)
		return -1;
	rc = run_alone(l, Q_COMMIT);
	return rc == SQLITE_OK ? 0 : ledger_fail(l, rc, err);
}

/* --- who asks what a commit changed ----------------------------------------------------------- */
void ledger_on_change(struct ledger *l, void (*changed)(void *arg, int64_t run_id), void *arg)
{
	l->changed = changed;
	l->changed_arg = arg;
}

void ledger_touch(struct ledger *l, int64_t run_id)
{
	for (size_t i = 0; l->changed && i < l->touched_count; i++)
		if (l->touched[i] == run_id)
			return;
	if (!l->changed)
		return;
	if (l->touched_count == l->touched_room) {
		l->touched_room = l->touched_room ? 2 * l->touched_room : 64;
		l->touched = xrealloc(l->touched, l->touched_room * sizeof(l->touched[0]));
	}
	l->touched[l->touched_count++] = run_id;
}

void ledger_tell_changes(struct ledger *l)
{
	size_t count = l->changed_count;

	for (size_t i = 0; i < count; i++) /* the callback only reads */
		l->changed(l->changed_arg, l->touched[i]);
	l->touched_count -= count;
	l->changed_count = 0;
	if (l->touched_count > 0) /* of a transaction that is open */
		memmove(l->touched, l->touched + count, l->touched_count * sizeof(l->touched[0]));
}

int ledger_commit_first(struct ledger *l, struct err *err)
{
	struct err late = { 0 };
	int rc = 0;

	release_borrowed(l);
	if (l->lost.code != ERR_NONE)
		rc = err_set(err, l->lost.code, "%s", l->lost.text);
	else if (!sqlite3_get_autocommit(l->db))
		rc = commit(l, err);
	if (rc == 0 && failpoint(FP_LEDGER_COMMITTED, &late) < 0) {
		l->lost =
			late; /* as when the very last sync fails: committed, and nobody can tell */
		l->broken = true;
		rc = err_set(err, late.code, "%s", late.text);
	}
	if (rc)
		ledger_rollback(l);
	else
		l->changed_count = l->touched_count;
	return rc;
}

int ledger_commit(struct ledger *l, struct err *err)
{
	int rc = ledger_commit_first(l, err);

	if (rc == 0)
		ledger_tell_changes(l);
	return rc;
}

/* --- opening -------------------------------------------------------------------------------- */
/* The folder may be reached through links, the file itself may not: SQLite refuses both alike. */
static char *resolve(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *folder = slash ? xstrndup(path, (size_t)(name - path)) : xstrdup(".");
	char *real = realpath(folder, NULL);
	char *whole = NULL;

	if (!real)
		err_errno(err, "%s", folder);
	else if (*name == '\0')
		err_set(err, ERR_USAGE, "%s: is a folder, not a ledger", path);
	else
		whole = path_join("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
	free(real);
	free(folder);
	return whole;
}

/* An existing file must be a plain one with one name (a second name would have a second journal);
 * a missing one is made for its owner only, and the journal gets the same mode from SQLite. */
static int prepare_file(const char *path, struct err *err)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
			return err_set(err, ERR_IO, "%s: not a regular file with a single name",
				       path);
		return 0;
	}
	if (errno != ENOENT)
		return err_errno(err, "%s", path);
	/* Nobody can hold a lock on what did not exist, so closing it here breaks none. */
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return err_errno(err, "%s", path);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* SQLite takes a file of less than a page for an empty one, and reads a page that is cut short as
 * if zeros followed; ours is whole pages unless a journal is there to mend it. */
static int check_size(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return err_errno(err, "%s", path);
	if (st.st_size % PAGE_BYTES != 0)
		return err_set(err, ERR_IO,
			       "%s: the file is damaged or no ledger: lbctl recover makes it anew",
			       path);
	return 0;
}

static int take_lock(struct ledger *l, struct err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(l->path, &l->db, flags, NULL);

	if (rc != SQLITE_OK)
		return ledger_fail(l, rc, err);
	sqlite3_extended_result_codes(l->db, 1);
	sqlite3_busy_timeout(l->db, LOCK_WAIT_MS);
	/* who is not to write any more closes the file, too */
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	/* Exclusive mode takes the lock with the first write and keeps it: write now. */
	return run_text(l,
			"PRAGMA page_size = 4096; PRAGMA locking_mode = EXCLUSIVE;"
			"BEGIN EXCLUSIVE; COMMIT;",
			err);
}

static int ask_int(struct ledger *l, const char *sql, int64_t *out, struct err *err)
{
	char text[32];

	if (ledger_ask_text(l, sql, text, sizeof(text), err))
		return -1;
	*out = strtoll(text, NULL, 10);
	return 0;
}

/* Is this a ledger, and one that we know how to read? A new one has version 0 and no table. */
static int check_version(struct ledger *l, int64_t *version, struct err *err)
{
	int64_t application, tables;

	if (ask_int(l, "PRAGMA user_version", version, err) ||
	    ask_int(l, "PRAGMA application_id", &application, err) ||
	    ask_int(l, "SELECT count(*) FROM sqlite_schema", &tables, err))
		return -1;
	if (*version < 0 || (application != APPLICATION_ID && (application || *version || tables)))
		return err_set(err, ERR_IO, "%s: a database of some other program, not a ledger",
			       l->path);
	if (*version > LEDGER_SCHEMA_VERSION)
		return err_set(err, ERR_IO,
			       "%s: written by a newer lbd (schema %lld), this one knows %d: "
			       "start the newer one",
			       l->path, (long long)*version, LEDGER_SCHEMA_VERSION);
	return 0;
}

int ledger_check(struct ledger *l, struct err *err)
{
	char answer[200];
	int64_t broken;

	if (ledger_ask_text(l, "PRAGMA integrity_check(1)", answer, sizeof(answer), err) ||
	    ask_int(l, "SELECT count(*) FROM pragma_foreign_key_check", &broken, err))
		return -1;
	if (strcmp(answer, "ok") != 0)
		return err_set(err, ERR_IO,
			       "%s: the file is damaged (%s): lbctl recover makes it anew", l->path,
			       answer);
	if (broken)
		return err_set(err, ERR_IO,
			       "%s: the file is damaged (%lld rows refer to nothing): stop "
			       "lbd, then: lbctl recover",
			       l->path, (long long)broken);
	return 0;
}

/* Checking costs time in proportion to the file, and lbd must be up within a second: a big ledger
 * is checked only if its last user died in the middle of a write. Damage that is met later gives
 * ERR_IO from the query that meets it. */
static bool wants_check(const char *path, bool was_interrupted)
{
	struct stat st;

	return was_interrupted || stat(path, &st) != 0 || st.st_size <= CHECK_ALWAYS_BYTES;
}

/* A migration may write a table anew that others refer to. */
static int check_references(struct ledger *l, struct err *err)
{
	int64_t broken;

	if (ask_int(l, "SELECT count(*) FROM pragma_foreign_key_check", &broken, err))
		return -1;
	if (broken)
		return err_set(err, ERR_INTERNAL, "%lld rows refer to nothing", (long long)broken);
	return 0;
}

int ledger_check_file(const char *path, struct err *err)
{
	struct ledger l = { .path = resolve(path, err) };
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
	int rc;

	if (!l.path)
		return -1;
	rc = sqlite3_open_v2(l.path, &l.db, flags, NULL);
	rc = rc == SQLITE_OK ? ledger_check(&l, err) : ledger_fail(&l, rc, err);
	sqlite3_close(l.db);
	free(l.path);
	return rc;
}

/* All or nothing. What is written anew may be larger than our memory: it may leave the cache
 * early. */
static int migrate(struct ledger *l, int64_t version, struct err *err)
{
	char end[80];

	sqlite3_snprintf(sizeof(end), end,
			 "PRAGMA user_version = %d; COMMIT; PRAGMA cache_spill = OFF",
			 LEDGER_SCHEMA_VERSION);
	if (run_text(l, "PRAGMA cache_spill = ON; BEGIN IMMEDIATE", err))
		return -1;
	for (int64_t v = version + 1; v <= LEDGER_SCHEMA_VERSION; v++)
		if (run_text(l, migrations[v], err))
			return err_wrap(err, "migration to schema %d", (int)v);
	if (check_references(l, err) || run_text(l, end, err))
		return err_wrap(err, "migration from schema %d", (int)version);
	return 0;
}

static int prepare_statements(struct ledger *l, struct err *err)
{
	int i, rc;

	for (i = 0; i < Q_COUNT; i++) {
		rc = sqlite3_prepare_v3(l->db, query_text[i], -1, SQLITE_PREPARE_PERSISTENT,
					&l->statements[i], NULL);
		if (rc != SQLITE_OK)
			return ledger_fail(l, rc, err);
	}
	return 0;
}

static int read_id(struct ledger *l, struct err *err)
{
	if (ledger_ask_text(l, query_text[Q_LEDGER_ID], l->id, sizeof(l->id), err))
		return -1;
	if (strlen(l->id) != sizeof(l->id) - 1)
		return err_set(err, ERR_IO, "%s: the ledger has lost its id", l->path);
	return 0;
}

/* Of an older lbd, which kept a rollback journal: cold, its first bytes are zeros. */
static bool is_journal_left(const char *path)
{
	static const char cold[8];
	char *journal = path_join("%s-journal", path), head[sizeof(cold)] = "";
	int fd = open(journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool is_left = fd < 0 && errno != ENOENT;

	if (fd >= 0) {
		is_left = read(fd, head, sizeof(head)) < 0 || memcmp(head, cold, sizeof(cold)) != 0;
		close(fd);
	}
	free(journal);
	return is_left;
}

static int open_file(struct ledger *l, struct err *err)
{
	bool was_interrupted = ledger_wal_is_left(l->path) || is_journal_left(l->path);
	int64_t version;
	struct stat st;

	if (prepare_file(l->path, err) || (!was_interrupted && check_size(l->path, err)))
		return -1;
	if (take_lock(l, err) || run_text(l, session, err) || check_version(l, &version, err))
		return -1;
	if (wants_check(l->path, was_interrupted) && ledger_check(l, err))
		return -1;
	if (ledger_wal_bring_in(l, err) ||
	    (version < LEDGER_SCHEMA_VERSION && migrate(l, version, err)) ||
	    run_text(l, "PRAGMA foreign_keys = ON", err) || ledger_wal_begin(l, err) ||
	    prepare_statements(l, err))
		return -1;
	if (stat(l->path, &st) < 0)
		return err_errno(err, "%s", l->path);
	l->device = st.st_dev;
	l->inode = st.st_ino;
	return read_id(l, err);
}

const char *ledger_library(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "SQLite %s", sqlite3_libversion());
	return name;
}

int ledger_open(const char *path, struct ledger **out, struct err *err)
{
	struct ledger *l = xcalloc(1, sizeof(*l));

	*out = NULL;
	l->path = resolve(path, err);
	if (!l->path || open_file(l, err)) {
		ledger_close(l);
		return -1;
	}
	*out = l;
	return 0;
}

/* Who may not write, or not to this file, leaves the log as it is: the next one brings it in. */
static void leave_in_peace(struct ledger *l)
{
	struct err err = { 0 };

	if (l->inode && l->lost.code == ERR_NONE && ledger_ask_guard(l, &err) == 0)
		ledger_wal_end(l, &err);
}

void ledger_close(struct ledger *l)
{
	int i;

	if (!l)
		return;
	if (l->db)
		ledger_rollback(l);
	for (i = 0; i < Q_COUNT; i++)
		sqlite3_finalize(l->statements[i]);
	leave_in_peace(l);
	sqlite3_close(l->db);
	if (l->inode)
		ledger_wal_set_aside(l);
	free(l->touched);
	free(l->path);
	free(l);
}

const char *ledger_id(const struct ledger *ledger)
{
	return ledger->id;
}

int64_t ledger_changes(const struct ledger *l)
{
#if SQLITE_VERSION_NUMBER >= 3037000
	return sqlite3_total_changes64(l->db);
#else
	return sqlite3_total_changes(l->db);
#endif
}

bool ledger_is_broken(const struct ledger *l)
{
	return l->broken;
}

/* --- backup --------------------------------------------------------------------------------- */
struct ledger_copy {
	struct ledger to; /* for its lock and its errors; it holds no statements */
	sqlite3_backup *backup;
	bool is_whole;
};

/* Who needs it on the disk syncs the file, in a thread where that takes long. */
struct ledger_copy *ledger_copy_begin(struct ledger *l, const char *path, struct err *err)
{
	struct ledger_copy *c = xcalloc(1, sizeof(*c));

	c->to.path = resolve(path, err);
	if (!c->to.path) {
		free(c);
		return NULL;
	}
	if (unlink(c->to.path) != 0 && errno != ENOENT)
		err_errno(err, "%s", path);
	else if (!prepare_file(c->to.path, err) && !take_lock(&c->to, err) &&
		 !run_text(&c->to, "PRAGMA synchronous = OFF", err)) {
		c->backup = sqlite3_backup_init(c->to.db, "main", l->db, "main");
		if (c->backup)
			return c;
		ledger_fail(&c->to, sqlite3_extended_errcode(c->to.db), err);
	}
	ledger_copy_end(c);
	return NULL;
}

int ledger_copy_step(struct ledger_copy *c, int pages, struct err *err)
{
	int rc = sqlite3_backup_step(c->backup, pages);

	if (rc == SQLITE_OK || rc == SQLITE_BUSY)
		return 1;
	if (rc != SQLITE_DONE)
		return ledger_fail(&c->to, rc, err);
	rc = sqlite3_backup_finish(c->backup);
	c->backup = NULL;
	if (rc != SQLITE_OK)
		return ledger_fail(&c->to, rc, err);
	if (ledger_wal_end(&c->to, err)) /* the first page says that there is a log beside it */
		return -1;
	c->is_whole = true;
	return 0;
}

void ledger_copy_end(struct ledger_copy *c)
{
	if (!c)
		return;
	sqlite3_backup_finish(c->backup);
	sqlite3_close(c->to.db);
	if (!c->is_whole)
		unlink(c->to.path);
	free(c->to.path);
	free(c);
}

static int write_copy(struct ledger *l, const char *path, struct err *err)
{
	struct ledger_copy *copy = ledger_copy_begin(l, path, err);
	int rc = copy ? ledger_copy_step(copy, -1, err) : -1;

	ledger_copy_end(copy);
	return rc == 0 ? file_sync(path, err) : -1;
}

int ledger_backup(struct ledger *l, const char *path, struct err *err)
{
	char *whole = resolve(path, err);
	char *temporary, *slash;
	int rc;

	if (!whole)
		return -1;
	if (!sqlite3_get_autocommit(l->db)) {
		free(whole);
		return err_set(err, ERR_INTERNAL, "a backup needs a committed ledger");
	}
	temporary = xasprintf("%s.tmp", whole);
	rc = write_copy(l, temporary, err);
	if (!rc)
		rc = failpoint(FP_BACKUP_COPIED, err);
	if (!rc && rename(temporary, whole) != 0)
		rc = err_errno(err, "%s", whole);
	slash = strrchr(whole, '/');
	slash[slash == whole] = '\0';
	if (!rc)
		rc = folder_sync(whole, err);
	failpoint(FP_BACKUP_PLACED, NULL);
	if (rc)
		unlink(temporary);
	free(temporary);
	free(whole);
	return rc ? err_wrap(err, "backup") : 0;
}
