/* SPDX-License-Identifier: MIT */
/* ledger_cron.c - the queries about periodic jobs. */
#include "sql/ledger_internal.h"

static const struct column entry_columns[] = {
	COLUMN(ledger_cron_entry, TEXT, name),
	COLUMN(ledger_cron_entry, INT64, seen_s),
	COLUMN(ledger_cron_entry, TEXT, disabled_by),
	{ NULL, 0, 0 },
};

static const struct column tick_columns[] = {
	COLUMN(ledger_cron_tick, TEXT, entry),
	COLUMN(ledger_cron_tick, INT64, scheduled_s),
	COLUMN(ledger_cron_tick, TEXT, state),
	COLUMN(ledger_cron_tick, TEXT, run),
	COLUMN(ledger_cron_tick, TEXT, text),
	COLUMN(ledger_cron_tick, INT64, time_ms),
	{ NULL, 0, 0 },
};

static const char no_such_tick[] = "it was not due yet";

int ledger_cron_entry_put(struct ledger *l, const struct ledger_cron_entry *entry, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_ENTRY_PUT);

	bind_row(s, entry_columns, entry);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_cron_entry_each(struct ledger *l,
			   int (*each)(const struct ledger_cron_entry *entry, void *arg), void *arg,
			   struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_ENTRY_LIST);
	struct ledger_cron_entry entry;
	int got;

	while ((got = read_next(l, s, entry_columns, &entry, err)) > 0 && each(&entry, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_cron_tick_put(struct ledger *l, const struct ledger_cron_tick *tick, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_TICK_PUT);

	bind_row(s, tick_columns, tick);
	if (write_one(l, s, ERR_LOCKED, "this tick has been dealt with already", err) < 0)
		return -1;
	s = query(l, Q_CRON_TICK_FORGET);
	bind_text(s, ":entry", tick->entry);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_cron_tick_newest(struct ledger *l, const char *entry, const char *state,
			    struct ledger_cron_tick *out, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_TICK_NEWEST);

	bind_text(s, ":entry", entry);
	bind_text(s, ":state", state);
	return read_one(l, s, tick_columns, out, no_such_tick, err);
}

int ledger_cron_tick_runs(struct ledger *l,
			  int (*each)(const struct ledger_cron_tick *tick, void *arg), void *arg,
			  struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_TICK_RUNS);
	struct ledger_cron_tick tick;
	int got;

	while ((got = read_next(l, s, tick_columns, &tick, err)) > 0 && each(&tick, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_cron_tick_waiting(struct ledger *l, const char *entry, struct ledger_cron_tick *out,
			     struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_TICK_WAITING);

	bind_text(s, ":entry", entry);
	return read_one(l, s, tick_columns, out, no_such_tick, err);
}

int ledger_cron_tick_succeeded(struct ledger *l, const char *entry, struct ledger_cron_tick *out,
			       struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CRON_TICK_SUCCEEDED);

	bind_text(s, ":entry", entry);
	return read_one(l, s, tick_columns, out, "it never succeeded", err);
}
