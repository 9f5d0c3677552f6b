/* SPDX-License-Identifier: MIT */
/* ledger_wal.c - the write-ahead log beside the file, in which commits end.
 *
 * A commit appends the pages that it changed to the log, and syncs that once; with a rollback
 * journal it takes four syncs. Since the lock is exclusive, SQLite keeps the index of the log in
 * its own memory and needs no shared memory: the file may lie on a network file system. A
 * checkpoint brings the pages into the file; the log then begins anew, in place.
 *
 * The log is there only while somebody works: who closes the ledger in peace brings all into the
 * file, which then is one plain file that any SQLite reads. What a killed process left in its log
 * is brought into the file, and synced there, before anybody acts on it: a sync of the log may have
 * failed, and the kernel takes pages that it could not write for written ones. */
#include "sql/ledger_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/paths.h"

enum { CHECKPOINT_PAGES = 1000 }; /* 4 MB */

void ledger_wal_checkpoint(struct ledger *l)
{
	struct err lost = l->lost, err = { 0 };
	int rc = sqlite3_wal_checkpoint_v2(l->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	if (rc == SQLITE_OK)
		return;
	ledger_fail(l, rc, &err);
	if (!l->broken)
		l->lost = lost;
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	(void)db;
	(void)name;
	if (pages >= CHECKPOINT_PAGES)
		ledger_wal_checkpoint(arg);
	return SQLITE_OK;
}

bool ledger_wal_is_left(const char *path)
{
	char *log = path_join("%s-wal", path);
	struct stat st;
	bool is_left = stat(log, &st) == 0 && st.st_size > 0;

	free(log);
	return is_left;
}

int ledger_wal_bring_in(struct ledger *l, struct err *err)
{
	int rc = sqlite3_wal_checkpoint_v2(l->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	return rc == SQLITE_OK ? 0 : ledger_fail(l, rc, err);
}

int ledger_wal_begin(struct ledger *l, struct err *err)
{
	char mode[16];

	if (ledger_ask_text(l, "PRAGMA journal_mode = WAL", mode, sizeof(mode), err))
		return -1;
	if (strcmp(mode, "wal") != 0)
		return err_set(err, ERR_INTERNAL, "%s: SQLite insists on journal mode %s", l->path,
			       mode);
	sqlite3_wal_hook(l->db, on_commit, l);
	return 0;
}

int ledger_wal_end(struct ledger *l, struct err *err)
{
	char mode[16];

	return ledger_ask_text(l, "PRAGMA journal_mode = DELETE", mode, sizeof(mode), err);
}

int ledger_settle(struct ledger *l, struct err *err)
{
	release_borrowed(l);
	if (l->lost.code != ERR_NONE)
		return err_set(err, l->lost.code, "%s", l->lost.text);
	return ledger_wal_end(l, err);
}

/* Not where the name leads nowhere: whoever moved the file away may bring it back. */
void ledger_wal_set_aside(const struct ledger *l)
{
	char *log, *aside;
	struct stat st;

	if (stat(l->path, &st) < 0 || (st.st_dev == l->device && st.st_ino == l->inode) ||
	    (l->may_write && l->may_write(l->guard_arg, NULL) < 0))
		return;
	log = path_join("%s-wal", l->path);
	aside = path_join("%s.of-%llu", log, (unsigned long long)l->inode);
	if (rename(log, aside) == 0)
		log_warn("another file is in the place of %s: the log of the one before it, inode "
			 "%llu, is kept as %s",
			 l->path, (unsigned long long)l->inode, aside);
	else if (errno != ENOENT)
		log_error(
			"another file is in the place of %s, and the log of the one before it, %s, "
			"is not its own: move it away (%s)",
			l->path, log, strerror(errno));
	free(aside);
	free(log);
}
