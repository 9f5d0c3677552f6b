/* SPDX-License-Identifier: MIT */
/* ledger_errors.c - what SQLite's answers mean to people and to the transaction that met them; who
 * may write at all.
 *
 * What a write failure means decides most of the code here. A broken constraint undoes one
 * statement. A write that finds the disk full undoes the whole transaction: `lost` then refuses the
 * rest of the group, so that no half of it is committed, until the caller has seen it fail in
 * ledger_commit; when the rollback worked, the ledger goes on. Any other input/output error makes
 * the file untrustworthy to this process - a failed fsync is not repeated, for the kernel may have
 * dropped the pages - so the ledger stays `broken` until lbd starts anew and SQLite rolls the
 * journal back. */
#include "sql/ledger_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const struct meaning {
	int rc;
	enum err_code code;
	const char *text;
} meanings[] = {
	{ SQLITE_CONSTRAINT, ERR_INTERNAL, "the ledger does not take this" },
	{ SQLITE_BUSY, ERR_LOCKED, "held by another process; is lbd running already?" },
	{ SQLITE_LOCKED, ERR_LOCKED, "held by another process; is lbd running already?" },
	{ SQLITE_FULL, ERR_IO, "disk full" },
	{ SQLITE_IOERR_WRITE, ERR_IO, "disk full, over quota or failing" },
	{ SQLITE_IOERR, ERR_IO, "input/output error; restart lbd once the disk is well" },
	{ SQLITE_CORRUPT, ERR_IO, "the file is damaged: lbctl recover makes it anew" },
	{ SQLITE_NOTADB, ERR_IO, "the file is damaged or no ledger: lbctl recover makes it anew" },
	{ SQLITE_CANTOPEN, ERR_IO, "cannot be opened" },
	{ SQLITE_READONLY, ERR_IO, "cannot be written" },
	{ SQLITE_PERM, ERR_IO, "no permission" },
	{ SQLITE_NOMEM, ERR_IO, "out of memory" },
	{ SQLITE_TOOBIG, ERR_USAGE, "a value is too long" },
};

/* The exact code where the table has it, else its family (the low byte). */
static const struct meaning *meaning_of(int rc)
{
	static const struct meaning unknown = { 0, ERR_INTERNAL, "unexpected answer from SQLite" };
	size_t i;

	for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].rc == rc || meanings[i].rc == (rc & 0xff))
			return &meanings[i];
	return &unknown;
}

static bool is_beyond_repair(int rc)
{
	int family = rc & 0xff;

	return family == SQLITE_CORRUPT || family == SQLITE_NOTADB ||
	       (family == SQLITE_IOERR && rc != SQLITE_IOERR_WRITE);
}

/* SQLite keeps the errno with the file that met it: 0 where it does not know. */
static int last_errno(const struct ledger *l)
{
	sqlite3_file *journal = NULL;
	int code = 0;

	sqlite3_file_control(l->db, "main", SQLITE_FCNTL_LAST_ERRNO, &code);
	sqlite3_file_control(l->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal);
	if (!code && journal && journal->pMethods)
		journal->pMethods->xFileControl(journal, SQLITE_FCNTL_LAST_ERRNO, &code);
	return code ? code : sqlite3_system_errno(l->db);
}

static int describe(const struct ledger *l, int rc, struct err *err)
{
	const struct meaning *m = meaning_of(rc);
	int family = rc & 0xff;
	int code = family == SQLITE_IOERR || family == SQLITE_CANTOPEN ? last_errno(l) : 0;

	if (code)
		return err_set(err, m->code, "%s: %s (%s)", l->path, m->text, strerror(code));
	if (m->code == ERR_INTERNAL)
		return err_set(err, m->code, "%s: %s (%s)", l->path, m->text,
			       sqlite3_errmsg(l->db));
	return err_set(err, m->code, "%s: %s", l->path, m->text);
}

int ledger_fail(struct ledger *l, int rc, struct err *err)
{
	struct err why = { 0 };

	if (rc == SQLITE_CONSTRAINT_UNIQUE)
		return err_set(err, ERR_LOCKED, "it is there already (%s)", sqlite3_errmsg(l->db));
	describe(l, rc, &why);
	if ((rc & 0xff) != SQLITE_CONSTRAINT && l->lost.code == ERR_NONE)
		l->lost = why;
	if (is_beyond_repair(rc))
		l->broken = true;
	return err_set(err, why.code, "%s", why.text);
}

/* --- who may write -------------------------------------------------------------------------- */

void ledger_guard(struct ledger *l, int (*may)(void *arg, struct err *err), void *arg)
{
	l->may_write = may;
	l->guard_arg = arg;
}

/* Somebody removed it, or put another in its place: what we commit nobody would ever read. A file
 * system that does not answer (ESTALE, ENOTCONN …) says neither: not now. */
int ledger_check_place(struct ledger *l, struct err *err)
{
	struct err why = { 0 };
	struct stat st;
	int rc;

	if (l->inode == 0) /* not open yet */
		return 0;
	rc = stat(l->path, &st);
	if (rc < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_errno(err, "cannot see whether %s is in its place", l->path);
	if (rc == 0 && st.st_dev == l->device && st.st_ino == l->inode)
		return 0;
	err_set(&why, ERR_IO,
		"%s is gone, or another file is in its place: restart lbd, which says "
		"what to do",
		l->path);
	if (l->lost.code == ERR_NONE)
		l->lost = why;
	l->broken = true;
	return err_set(err, why.code, "%s", why.text);
}

bool ledger_may_be_written(const struct ledger *l)
{
	return l->may_write == NULL || l->may_write(l->guard_arg, NULL) == 0;
}

int ledger_ask_guard(struct ledger *l, struct err *err)
{
	struct err why = { 0 };

	if (ledger_check_place(l, &why) == 0 &&
	    (l->may_write == NULL || l->may_write(l->guard_arg, &why) == 0))
		return 0;
	if (l->lost.code == ERR_NONE)
		l->lost = why;
	if (why.code == ERR_LOCKED)
		l->broken = true;
	return err_set(err, why.code, "%s", why.text);
}
