/* SPDX-License-Identifier: MIT */
/* ledger_recover.c - what only the making of a new ledger from files and a backup needs. */
#include "sql/ledger_internal.h"

#include <stdio.h>
#include <string.h>

int ledger_set_id(struct ledger *l, const char *id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_META_PUT);

	if (strlen(id) != sizeof(l->id) - 1)
		return err_set(err, ERR_USAGE, "\"%s\" is no id of a ledger", id);
	bind_text(s, ":key", "ledger_id");
	bind_text(s, ":value", id);
	if (write_rows(l, s, err) < 0)
		return -1;
	snprintf(l->id, sizeof(l->id), "%s", id);
	return 0;
}

/* Events of a run that the backup knows are the backup's as far as that goes; all are numbered anew
 * in the order of their times. Not in sql/queries: the tables of `old` are there for a moment
 * only. */
static const char take_nothing[] =
	"CREATE TEMP TABLE told AS "
	"SELECT run_id, time_ms, kind, actor, text, attempt FROM events ORDER BY time_ms, id;";

static const char take_old[] =
	"INSERT OR REPLACE INTO nodes SELECT * FROM old.nodes;"
	"INSERT OR REPLACE INTO cron_entries SELECT * FROM old.cron_entries;"
	"INSERT OR REPLACE INTO cron_ticks SELECT * FROM old.cron_ticks;"
	"INSERT OR IGNORE INTO removals SELECT * FROM old.removals;"
	"DELETE FROM events WHERE time_ms <= (SELECT max(time_ms) FROM old.events) AND run_id IN "
	"(SELECT runs.id FROM runs JOIN old.runs AS was ON was.name = runs.name "
	"AND was.created_ms = runs.created_ms);"
	"CREATE TEMP TABLE told AS "
	"SELECT run_id, time_ms, kind, actor, text, attempt FROM events UNION ALL "
	"SELECT runs.id, e.time_ms, e.kind, e.actor, e.text, e.attempt FROM old.events AS e "
	"LEFT JOIN old.runs AS was ON was.id = e.run_id LEFT JOIN runs ON runs.name = was.name "
	"AND runs.created_ms = was.created_ms "
	"WHERE e.run_id IS NULL OR runs.id IS NOT NULL;";

static const char number_anew[] =
	"DELETE FROM events;"
	"INSERT INTO events (run_id, time_ms, kind, actor, text, attempt) "
	"SELECT run_id, time_ms, kind, actor, text, attempt FROM told ORDER BY time_ms, rowid;"
	"DROP TABLE told;";

static int run_sql(struct ledger *l, const char *sql, struct err *err)
{
	if (sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return err_set(err, ERR_INTERNAL, "%s: %s", l->path, sqlite3_errmsg(l->db));
}

int ledger_take_over(struct ledger *l, const char *path, struct err *err)
{
	char *attach = path ? sqlite3_mprintf("ATTACH DATABASE %Q AS old", path) : NULL;
	int rc = attach ? run_sql(l, attach, err) : 0;

	sqlite3_free(attach);
	if (rc == 0)
		rc = run_sql(l, "BEGIN IMMEDIATE", err);
	if (rc == 0 && (run_sql(l, path ? take_old : take_nothing, err) < 0 ||
			run_sql(l, number_anew, err) < 0 || run_sql(l, "COMMIT", err) < 0))
		rc = -1;
	if (rc < 0)
		sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
	if (path)
		sqlite3_exec(l->db, "DETACH DATABASE old", NULL, NULL, NULL);
	return rc;
}
