/* SPDX-License-Identifier: MIT */
/* ledger_rows.c - between C and SQL: binding, running, reading. Everything the queries have in
 * common. */
#include "sql/ledger_internal.h"

#include <assert.h>
#include <math.h>

sqlite3_stmt *query(struct ledger *l, enum query which)
{
	sqlite3_stmt *s = l->statements[which];

	if (s == l->borrowed) {
		sqlite3_reset(s);
		l->borrowed = NULL;
	}
	/* A callback must not start the very query that called it. */
	assert(!sqlite3_stmt_busy(s));
	sqlite3_clear_bindings(s);
	return s;
}

static int parameter_index(sqlite3_stmt *s, const char *parameter)
{
	int index = sqlite3_bind_parameter_index(s, parameter);

	assert(index > 0);
	return index;
}

/* Binding fails only for a wrong index, for a text past SQLite's limit (1 GB), or out of memory;
 * the parameter is then NULL, which no NOT NULL column takes. */
void bind_int(sqlite3_stmt *s, const char *parameter, int64_t value)
{
	sqlite3_bind_int64(s, parameter_index(s, parameter), value);
}

void bind_real(sqlite3_stmt *s, const char *parameter, double value)
{
	sqlite3_bind_double(s, parameter_index(s, parameter), value);
}

static void bind_text_at(sqlite3_stmt *s, int index, const char *value)
{
	sqlite3_bind_text(s, index, value ? value : "", -1, SQLITE_STATIC);
}

void bind_text(sqlite3_stmt *s, const char *parameter, const char *value)
{
	bind_text_at(s, parameter_index(s, parameter), value);
}

static void bind_column(sqlite3_stmt *s, int index, enum column_kind kind, const void *at)
{
	switch (kind) {
	case COLUMN_INT64:
		sqlite3_bind_int64(s, index, *(const int64_t *)at);
		break;
	case COLUMN_INT:
		sqlite3_bind_int(s, index, *(const int *)at);
		break;
	case COLUMN_BOOL:
		sqlite3_bind_int(s, index, *(const bool *)at);
		break;
	case COLUMN_REAL:
		sqlite3_bind_double(s, index, *(const double *)at);
		break;
	case COLUMN_TEXT:
		bind_text_at(s, index, *(const char *const *)at);
		break;
	case COLUMN_RUN_STATE:
		bind_text_at(s, index, run_state_name(*(const enum run_state *)at));
		break;
	case COLUMN_ATTEMPT_STATE:
		bind_text_at(s, index, attempt_state_name(*(const enum attempt_state *)at));
		break;
	case COLUMN_CAUSE:
		bind_text_at(s, index, cause_name(*(const enum cause *)at));
		break;
	case COLUMN_ORDER:
		bind_text_at(s, index, run_order_name(*(const enum run_order *)at));
		break;
	}
}

void bind_row(sqlite3_stmt *s, const struct column *columns, const void *row)
{
	const struct column *c;

	for (c = columns; c->parameter; c++) {
		int index = sqlite3_bind_parameter_index(s, c->parameter);

		if (index > 0)
			bind_column(s, index, c->kind, (const char *)row + c->offset);
	}
}

/* Never NULL: every TEXT column is NOT NULL, so NULL means out of memory here. */
static const char *text_at(sqlite3_stmt *s, int index)
{
	const char *text = (const char *)sqlite3_column_text(s, index);

	return text ? text : "";
}

static double real_at(sqlite3_stmt *s, int index)
{
	if (sqlite3_column_type(s, index) == SQLITE_NULL)
		return NAN;
	return sqlite3_column_double(s, index);
}

static void read_column(sqlite3_stmt *s, int index, enum column_kind kind, void *at)
{
	switch (kind) {
	case COLUMN_INT64:
		*(int64_t *)at = sqlite3_column_int64(s, index);
		break;
	case COLUMN_INT:
		*(int *)at = sqlite3_column_int(s, index);
		break;
	case COLUMN_BOOL:
		*(bool *)at = sqlite3_column_int(s, index) != 0;
		break;
	case COLUMN_REAL:
		*(double *)at = real_at(s, index);
		break;
	case COLUMN_TEXT:
		*(const char **)at = text_at(s, index);
		break;
	case COLUMN_RUN_STATE:
		*(enum run_state *)at = run_state_from_name(text_at(s, index));
		break;
	case COLUMN_ATTEMPT_STATE:
		*(enum attempt_state *)at = attempt_state_from_name(text_at(s, index));
		break;
	case COLUMN_CAUSE:
		*(enum cause *)at = cause_from_name(text_at(s, index));
		break;
	case COLUMN_ORDER:
		*(enum run_order *)at = run_order_from_name(text_at(s, index));
		break;
	}
}

void release_borrowed(struct ledger *l)
{
	sqlite3_reset(l->borrowed);
	l->borrowed = NULL;
}

int read_next(struct ledger *l, sqlite3_stmt *s, const struct column *columns, void *row,
	      struct err *err)
{
	int i, rc;

	if (l->broken)
		return err_set(err, l->lost.code, "%s", l->lost.text);
	rc = sqlite3_step(s);
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return ledger_fail(l, rc, err);
	for (i = 0; columns[i].parameter; i++)
		read_column(s, i, columns[i].kind, (char *)row + columns[i].offset);
	return 1;
}

int read_end(sqlite3_stmt *s, int last)
{
	sqlite3_reset(s);
	return last == 0 ? 0 : -1;
}

int read_one(struct ledger *l, sqlite3_stmt *s, const struct column *columns, void *row,
	     const char *none, struct err *err)
{
	int got = read_next(l, s, columns, row, err);

	release_borrowed(l);
	if (got > 0) {
		l->borrowed = s;
		return 0;
	}
	sqlite3_reset(s);
	return got == 0 ? err_set(err, ERR_NOT_FOUND, "%s", none) : -1;
}

int run_alone(struct ledger *l, enum query which)
{
	sqlite3_step(l->statements[which]);
	return sqlite3_reset(l->statements[which]);
}

int write_rows(struct ledger *l, sqlite3_stmt *s, struct err *err)
{
	int rc = SQLITE_OK;

	/* The first half of this group of writes is gone: the second must not go in alone. */
	if (l->lost.code != ERR_NONE)
		return err_set(err, l->lost.code, "%s", l->lost.text);
	if (sqlite3_get_autocommit(l->db)) {
		if (ledger_ask_guard(l, err) < 0)
			return -1;
		rc = run_alone(l, Q_BEGIN);
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_DONE)
		ledger_fail(l, rc, err);
	sqlite3_reset(s);
	release_borrowed(l);
	return rc == SQLITE_DONE ? sqlite3_changes(l->db) : -1;
}

int write_one(struct ledger *l, sqlite3_stmt *s, enum err_code code, const char *otherwise,
	      struct err *err)
{
	int changed = write_rows(l, s, err);

	if (changed == 1 || changed == -1)
		return changed == 1 ? 0 : -1;
	return err_set(err, code, "%s", otherwise);
}

int ledger_ask_text(struct ledger *l, const char *sql, char *out, size_t size, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(l->db, sql, -1, &s, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	sqlite3_snprintf((int)size, out, "%s",
			 rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : "");
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		ledger_fail(l, rc, err);
	sqlite3_finalize(s);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}
