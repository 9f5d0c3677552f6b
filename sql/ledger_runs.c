/* SPDX-License-Identifier: MIT */
/* ledger_runs.c - the queries about runs. */
#include "sql/ledger_internal.h"

#include <math.h>

static const struct column run_columns[] = {
	COLUMN(ledger_run, INT64, id),           COLUMN(ledger_run, TEXT, name),
	COLUMN(ledger_run, TEXT, owner),         COLUMN(ledger_run, INT64, owner_uid),
	COLUMN(ledger_run, RUN_STATE, state),    COLUMN(ledger_run, CAUSE, cause),
	COLUMN(ledger_run, TEXT, text),          COLUMN(ledger_run, TEXT, scheduler),
	COLUMN(ledger_run, TEXT, dir),           COLUMN(ledger_run, ORDER, wanted),
	COLUMN(ledger_run, TEXT, wanted_by),     COLUMN(ledger_run, TEXT, wanted_reason),
	COLUMN(ledger_run, INT64, wanted_ms),    COLUMN(ledger_run, INT64, created_ms),
	COLUMN(ledger_run, INT64, ended_ms),     COLUMN(ledger_run, INT64, backoff_until_ms),
	COLUMN(ledger_run, INT64, failures),     COLUMN(ledger_run, INT64, step),
	COLUMN(ledger_run, INT64, target_step),  COLUMN(ledger_run, REAL, loss),
	COLUMN(ledger_run, REAL, tokens_per_s),  COLUMN(ledger_run, REAL, mfu),
	COLUMN(ledger_run, TEXT, resume_from),   COLUMN(ledger_run, TEXT, run_group),
	COLUMN(ledger_run, TEXT, wanted_switch), { NULL, 0, 0 },
};

static const struct column ended_columns[] = {
	COLUMN(ledger_ended, INT64, id),         COLUMN(ledger_ended, TEXT, name),
	COLUMN(ledger_ended, TEXT, dir),         COLUMN(ledger_ended, INT64, ended_ms),
	COLUMN(ledger_ended, BOOL, is_periodic), { NULL, 0, 0 },
};

static const char no_such_run[] = "no such run";

int ledger_run_insert(struct ledger *l, const struct ledger_run *run, int64_t *id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_INSERT);
	struct err why = { 0 };

	bind_row(s, run_columns, run);
	if (write_rows(l, s, &why) < 0)
		return err_set(err, why.code, "%s: %s", run->name,
			       why.code == ERR_LOCKED ? "there is a run of this name already"
						      : why.text);
	*id = sqlite3_last_insert_rowid(l->db);
	ledger_touch(l, *id);
	return 0;
}

int ledger_run_by_id(struct ledger *l, int64_t id, struct ledger_run *out, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_BY_ID);

	bind_int(s, ":id", id);
	return read_one(l, s, run_columns, out, no_such_run, err);
}

int ledger_run_find(struct ledger *l, const char *name, struct ledger_run *out, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_FIND);

	bind_text(s, ":name", name);
	if (read_one(l, s, run_columns, out, no_such_run, err))
		return err_wrap(err, "%s", name);
	return 0;
}

static int each_run(struct ledger *l, sqlite3_stmt *s,
		    int (*each)(const struct ledger_run *run, void *arg), void *arg,
		    struct err *err)
{
	struct ledger_run run;
	int got;

	while ((got = read_next(l, s, run_columns, &run, err)) > 0 && each(&run, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_run_each(struct ledger *l, bool live_only,
		    int (*each)(const struct ledger_run *run, void *arg), void *arg,
		    struct err *err)
{
	return each_run(l, query(l, live_only ? Q_RUN_LIST_LIVE : Q_RUN_LIST), each, arg, err);
}

int ledger_run_each_since(struct ledger *l, int64_t since_ms,
			  int (*each)(const struct ledger_run *run, void *arg), void *arg,
			  struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_LIST_SINCE);

	bind_int(s, ":since_ms", since_ms);
	return each_run(l, s, each, arg, err);
}

int ledger_run_move(struct ledger *l, int64_t id, enum run_state from, enum run_state to,
		    enum cause cause, const char *text, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_MOVE);

	if (!run_state_may_follow(from, to))
		return err_set(err, ERR_INTERNAL, "a run cannot go from %s to %s",
			       run_state_name(from), run_state_name(to));
	ledger_touch(l, id);
	bind_int(s, ":id", id);
	bind_text(s, ":from", run_state_name(from));
	bind_text(s, ":to", run_state_name(to));
	bind_text(s, ":cause", cause_name(cause));
	bind_text(s, ":text", text);
	bind_int(s, ":ended_ms", run_state_is_final(to) ? now_ms : 0);
	return write_one(l, s, ERR_INTERNAL, "the run is not in the state it was thought to be in",
			 err);
}

int ledger_run_set_wanted(struct ledger *l, int64_t id, enum run_order wanted, const char *by,
			  const char *reason, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_SET_WANTED);

	ledger_touch(l, id);
	bind_int(s, ":id", id);
	bind_text(s, ":wanted", run_order_name(wanted));
	bind_text(s, ":wanted_by", by);
	bind_text(s, ":wanted_reason", reason);
	bind_int(s, ":wanted_ms", now_ms);
	return write_one(l, s, ERR_NOT_FOUND, no_such_run, err);
}

int ledger_run_set_switch(struct ledger *l, int64_t id, const char *file, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_SET_SWITCH);

	ledger_touch(l, id);
	bind_int(s, ":id", id);
	bind_text(s, ":wanted_switch", file);
	return write_one(l, s, ERR_NOT_FOUND, no_such_run, err);
}

int ledger_run_set_failures(struct ledger *l, int64_t id, int64_t failures,
			    int64_t backoff_until_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_SET_FAILURES);

	ledger_touch(l, id);
	bind_int(s, ":id", id);
	bind_int(s, ":failures", failures);
	bind_int(s, ":backoff_until_ms", backoff_until_ms);
	return write_one(l, s, ERR_NOT_FOUND, no_such_run, err);
}

/* What is not bound is NULL, and the query keeps the column. */
int ledger_run_set_progress(struct ledger *l, int64_t id, int64_t step, int64_t target_step,
			    double loss, double tokens_per_s, double mfu, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_SET_PROGRESS);

	bind_int(s, ":id", id);
	if (step >= 0)
		bind_int(s, ":step", step);
	if (target_step >= 0)
		bind_int(s, ":target_step", target_step);
	bind_real(s, ":loss", loss);
	bind_real(s, ":tokens_per_s", tokens_per_s < 0 ? NAN : tokens_per_s);
	bind_real(s, ":mfu", mfu < 0 ? NAN : mfu);
	return write_one(l, s, ERR_NOT_FOUND, no_such_run, err);
}

int ledger_run_set_resume(struct ledger *l, int64_t id, const char *resume_from, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_SET_RESUME);

	ledger_touch(l, id);
	bind_int(s, ":id", id);
	bind_text(s, ":resume_from", resume_from);
	return write_one(l, s, ERR_NOT_FOUND, no_such_run, err);
}

int ledger_run_next_ended(struct ledger *l, int64_t after_ms, int64_t after_id, int64_t until_ms,
			  struct ledger_ended *out, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_RUN_NEXT_ENDED);

	bind_int(s, ":after_ms", after_ms);
	bind_int(s, ":after_id", after_id);
	bind_int(s, ":until_ms", until_ms);
	return read_one(l, s, ended_columns, out, "no other run has ended", err);
}
