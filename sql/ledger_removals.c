/* SPDX-License-Identifier: MIT */
/* ledger_removals.c - the queries about runs that are removed for good. */
#include "sql/ledger_internal.h"

static const struct column removal_columns[] = {
	COLUMN(ledger_removal, INT64, id),
	COLUMN(ledger_removal, TEXT, name),
	COLUMN(ledger_removal, TEXT, dir),
	COLUMN(ledger_removal, INT64, time_ms),
	{ NULL, 0, 0 },
};

/* What refers to others goes first. */
static const enum query rows_of_run[] = {
	Q_RUN_REMOVE_TICKS,       Q_RUN_REMOVE_METRICS,  Q_RUN_REMOVE_LAUNCHES,
	Q_RUN_REMOVE_CHECKPOINTS, Q_RUN_REMOVE_ATTEMPTS, Q_RUN_REMOVE_EVENTS,
};

int ledger_run_remove(struct ledger *l, int64_t run_id, const struct ledger_removal *removal,
		      int64_t *id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_REMOVAL_PUT);

	bind_row(s, removal_columns, removal);
	if (write_rows(l, s, err) < 0)
		return -1;
	*id = sqlite3_last_insert_rowid(l->db);
	for (size_t i = 0; i < sizeof(rows_of_run) / sizeof(rows_of_run[0]); i++) {
		s = query(l, rows_of_run[i]);
		bind_int(s, ":run_id", run_id);
		if (write_rows(l, s, err) < 0)
			return -1;
	}
	s = query(l, Q_RUN_REMOVE);
	bind_int(s, ":run_id", run_id);
	return write_one(l, s, ERR_INTERNAL, "it is not over", err);
}

int ledger_removal_next(struct ledger *l, int64_t after_id, struct ledger_removal *out,
			struct err *err)
{
	sqlite3_stmt *s = query(l, Q_REMOVAL_NEXT);

	bind_int(s, ":after_id", after_id);
	return read_one(l, s, removal_columns, out, "nothing is left to remove", err);
}

int ledger_removal_done(struct ledger *l, int64_t id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_REMOVAL_DONE);

	bind_int(s, ":id", id);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}
