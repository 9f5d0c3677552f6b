/* SPDX-License-Identifier: MIT */
/* ledger_internal.h - what the files of sql/ share: the connection, and how rows become structs.
 *
 * A query is three lines: take the statement, bind, run it.
 *
 *	sqlite3_stmt *s = query(l, Q_RUN_FIND);
 *
 *	bind_text(s, ":name", name);
 *	return read_one(l, s, run_columns, out, "no such run", err);
 */
#ifndef SQL_LEDGER_INTERNAL_H
#define SQL_LEDGER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "queries.h"
#include "sql/ledger.h"

struct ledger {
	sqlite3 *db;
	char *path;
	char id[17];
	sqlite3_stmt *statements[Q_COUNT];
	sqlite3_stmt *borrowed; /* found its row; reset later, since the caller reads its strings */
	struct err lost;        /* set: what the open transaction wrote is gone, for this reason */
	bool broken; /* `lost` for good: the file can no longer be trusted to this process */
	int (*may_write)(void *arg, struct err *err); /* ledger_guard; NULL: always */
	void *guard_arg;
	dev_t device; /* of the file that was opened, … */
	ino_t inode;  /* … which its name is to lead to as long as we write */
	void (*changed)(void *arg, int64_t run_id); /* ledger_on_change; NULL: nobody asks */
	void *changed_arg;
	int64_t *touched; /* runs that the open transaction changed */
	size_t touched_count, touched_room;
	size_t changed_count; /* so many of them are committed, and not told yet */
};

/* The transaction changes what ledger_on_change tells of. */
void ledger_touch(struct ledger *l, int64_t run_id);

/* How one member of a struct lies in a column and in the parameter of the same name. A table of
 * them ends with a NULL name, and lists the columns in the order of the SELECTs. */
enum column_kind {
	COLUMN_INT64,
	COLUMN_INT,
	COLUMN_BOOL,
	COLUMN_REAL, /* NaN is NULL */
	COLUMN_TEXT,
	COLUMN_RUN_STATE,
	COLUMN_ATTEMPT_STATE,
	COLUMN_CAUSE,
	COLUMN_ORDER,
};

struct column {
	const char *parameter; /* ":name" */
	enum column_kind kind;
	size_t offset;
};

/* clang-format off */
#define COLUMN(type, kind, member) { ":" #member, COLUMN_##kind, offsetof(struct type, member) }
/* clang-format on */

/* The prepared statement, reset and ready to bind; borrowed. Strings are bound as they stand: they
 * must live until the statement has run. */
sqlite3_stmt *query(struct ledger *l, enum query which);
void bind_int(sqlite3_stmt *s, const char *parameter, int64_t value);
void bind_real(sqlite3_stmt *s, const char *parameter, double value);
void bind_text(sqlite3_stmt *s, const char *parameter, const char *value); /* NULL is "" */
/* Binds whatever parameters the statement has of those in the table. */
void bind_row(sqlite3_stmt *s, const struct column *columns, const void *row);

/* Runs a statement without parameters or rows: SQLite's result code. */
int run_alone(struct ledger *l, enum query which);

/* Runs a statement that writes, in a transaction opened on demand: the number of rows changed, or
 * -1 with err: ERR_LOCKED when such a row is there already. A broken constraint undoes this one
 * statement only, any other failure the whole transaction. */
int write_rows(struct ledger *l, sqlite3_stmt *s, struct err *err);
/* The same where exactly one row must have changed, else `code` and `otherwise`. */
int write_one(struct ledger *l, sqlite3_stmt *s, enum err_code code, const char *otherwise,
	      struct err *err);

/* One row; its strings live until the next call on the ledger. None: ERR_NOT_FOUND with `none`. */
int read_one(struct ledger *l, sqlite3_stmt *s, const struct column *columns, void *row,
	     const char *none, struct err *err);
/* Row by row: 1, 0 at the end, -1 with err. Then read_end, which gives 0 if the end was reached. */
int read_next(struct ledger *l, sqlite3_stmt *s, const struct column *columns, void *row,
	      struct err *err);
int read_end(sqlite3_stmt *s, int last);

/* The first column of the first row of any statement, as text; "" when there is none. */
int ledger_ask_text(struct ledger *l, const char *sql, char *out, size_t size, struct err *err);

/* The write-ahead log. Left of one who was killed, or who could not close in peace? */
bool ledger_wal_is_left(const char *path);
/* All of such a log into the file, synced. Without one: nothing. */
int ledger_wal_bring_in(struct ledger *l, struct err *err);
/* Commits end in the log from now on; no transaction may be open. */
int ledger_wal_begin(struct ledger *l, struct err *err);
/* What is in the log into the file as far as it goes, so that the log begins anew in place. Where
 * there is no room it stays in the log; a disk that is ill makes the ledger `broken`. */
void ledger_wal_checkpoint(struct ledger *l);
/* All into the file, and no log any more. */
int ledger_wal_end(struct ledger *l, struct err *err);
/* After the close: where another file has our name by now, SQLite would take our log for that
 * one's. It gets another name, unless the guard says that the place is no longer ours. */
void ledger_wal_set_aside(const struct ledger *l);

/* Ends the life of the row that read_one found; called only when the next query has run, for its
 * caller may have bound strings of that row. */
void release_borrowed(struct ledger *l);

/* Before a transaction is begun, which writes to the journal, and before it is committed. */
int ledger_ask_guard(struct ledger *l, struct err *err);

/* Puts into err what SQLite's result code means to people, and remembers what it means for the
 * transaction; -1. */
int ledger_fail(struct ledger *l, int rc, struct err *err);

#endif
