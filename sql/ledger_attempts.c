/* SPDX-License-Identifier: MIT */
/* ledger_attempts.c - the queries about attempts and the launches in them. */
#include "sql/ledger_internal.h"

static const struct column attempt_columns[] = {
	COLUMN(ledger_attempt, INT64, id),
	COLUMN(ledger_attempt, INT64, run_id),
	COLUMN(ledger_attempt, INT64, number),
	COLUMN(ledger_attempt, TEXT, token),
	COLUMN(ledger_attempt, ATTEMPT_STATE, state),
	COLUMN(ledger_attempt, INT64, job_id),
	COLUMN(ledger_attempt, INT64, submit_time),
	COLUMN(ledger_attempt, CAUSE, cause),
	COLUMN(ledger_attempt, INT, exit_code),
	COLUMN(ledger_attempt, INT, signal),
	COLUMN(ledger_attempt, TEXT, text),
	COLUMN(ledger_attempt, TEXT, nodes),
	COLUMN(ledger_attempt, INT64, created_ms),
	COLUMN(ledger_attempt, INT64, released_ms),
	COLUMN(ledger_attempt, INT64, started_ms),
	COLUMN(ledger_attempt, INT64, ended_ms),
	COLUMN(ledger_attempt, INT64, resumed_from_step),
	COLUMN(ledger_attempt, INT64, spool_offset),
	COLUMN(ledger_attempt, INT64, spool_seq),
	COLUMN(ledger_attempt, TEXT, excluded),
	COLUMN(ledger_attempt, BOOL, is_walled_in),
	COLUMN(ledger_attempt, BOOL, is_short),
	COLUMN(ledger_attempt, BOOL, was_waiting),
	{ NULL, 0, 0 },
};

static const struct column launch_columns[] = {
	COLUMN(ledger_launch, INT64, attempt_id),
	COLUMN(ledger_launch, INT64, number),
	COLUMN(ledger_launch, CAUSE, cause),
	COLUMN(ledger_launch, INT, exit_code),
	COLUMN(ledger_launch, INT, signal),
	COLUMN(ledger_launch, TEXT, text),
	COLUMN(ledger_launch, INT64, pid),
	COLUMN(ledger_launch, INT64, started_ms),
	COLUMN(ledger_launch, INT64, ended_ms),
	COLUMN(ledger_launch, INT64, resumed_from_step),
	COLUMN(ledger_launch, INT64, first_step),
	COLUMN(ledger_launch, INT64, last_step),
	COLUMN(ledger_launch, INT64, first_step_ms),
	COLUMN(ledger_launch, INT64, last_step_ms),
	COLUMN(ledger_launch, INT64, saved_step),
	COLUMN(ledger_launch, INT64, saved_ms),
	COLUMN(ledger_launch, TEXT, start),
	{ NULL, 0, 0 },
};

static const char no_such_attempt[] = "no such attempt";

int ledger_attempt_insert(struct ledger *l, int64_t run_id, int64_t number, const char *token,
			  int64_t now_ms, int64_t *id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_INSERT);

	bind_int(s, ":run_id", run_id);
	bind_int(s, ":number", number);
	bind_text(s, ":token", token);
	bind_int(s, ":created_ms", now_ms);
	if (write_rows(l, s, err) < 0)
		return -1;
	*id = sqlite3_last_insert_rowid(l->db);
	ledger_touch(l, run_id);
	return 0;
}

static int read_run_id(struct ledger *l, int64_t id, int64_t *out)
{
	static const struct column columns[] = { { ":run_id", COLUMN_INT64, 0 }, { NULL, 0, 0 } };
	sqlite3_stmt *s = query(l, Q_ATTEMPT_RUN);
	int got;

	bind_int(s, ":id", id);
	got = read_next(l, s, columns, out, NULL);
	sqlite3_reset(s);
	return got > 0 ? 0 : -1;
}

/* What a write to this attempt gave. */
static int touching(struct ledger *l, int64_t id, int rc)
{
	int64_t run_id;

	if (rc == 0 && l->changed && read_run_id(l, id, &run_id) == 0)
		ledger_touch(l, run_id);
	return rc;
}

int ledger_attempt_restore(struct ledger *l, const struct ledger_attempt *attempt, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_RESTORE);

	bind_row(s, attempt_columns, attempt);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_attempt_each(struct ledger *l, int64_t run_id,
			int (*each)(const struct ledger_attempt *attempt, void *arg), void *arg,
			struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_LIST);
	struct ledger_attempt attempt;
	int got;

	bind_int(s, ":run_id", run_id);
	while ((got = read_next(l, s, attempt_columns, &attempt, err)) > 0 &&
	       each(&attempt, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_attempt_newest(struct ledger *l, int64_t run_id, struct ledger_attempt *out,
			  struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_NEWEST);

	bind_int(s, ":run_id", run_id);
	return read_one(l, s, attempt_columns, out, "the run has no attempt yet", err);
}

int ledger_attempt_by_token(struct ledger *l, const char *token, struct ledger_attempt *out,
			    struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_BY_TOKEN);

	bind_text(s, ":token", token);
	return read_one(l, s, attempt_columns, out, "no attempt has this token", err);
}

int ledger_attempt_set_job(struct ledger *l, int64_t id, int64_t job_id, int64_t submit_time,
			   struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_SET_JOB);

	bind_int(s, ":id", id);
	bind_int(s, ":job_id", job_id);
	bind_int(s, ":submit_time", submit_time);
	return touching(l, id,
			write_one(l, s, ERR_INTERNAL, "the attempt is not waiting for its job id",
				  err));
}

int ledger_attempt_released(struct ledger *l, int64_t id, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_RELEASED);

	bind_int(s, ":id", id);
	bind_int(s, ":released_ms", now_ms);
	return touching(l, id, write_one(l, s, ERR_INTERNAL, "the attempt is not held", err));
}

int ledger_attempt_started(struct ledger *l, int64_t id, const char *nodes, int64_t now_ms,
			   struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_STARTED);

	bind_int(s, ":id", id);
	bind_text(s, ":nodes", nodes);
	bind_int(s, ":started_ms", now_ms);
	return touching(l, id, write_one(l, s, ERR_INTERNAL, "the attempt has ended already", err));
}

int ledger_attempt_end(struct ledger *l, int64_t id, enum cause cause, int exit_code, int signal,
		       const char *text, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_END);

	bind_int(s, ":id", id);
	bind_text(s, ":cause", cause_name(cause));
	bind_int(s, ":exit_code", exit_code);
	bind_int(s, ":signal", signal);
	bind_text(s, ":text", text);
	bind_int(s, ":ended_ms", now_ms);
	return touching(l, id, write_one(l, s, ERR_INTERNAL, "the attempt has ended already", err));
}

int ledger_attempt_set_excluded(struct ledger *l, int64_t id, const char *excluded, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_SET_EXCLUDED);

	bind_int(s, ":id", id);
	bind_text(s, ":excluded", excluded);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_attempt_walled_in(struct ledger *l, int64_t id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_WALLED_IN);

	bind_int(s, ":id", id);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_attempt_short(struct ledger *l, int64_t id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_SHORT);

	bind_int(s, ":id", id);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_attempt_waited(struct ledger *l, int64_t id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_WAITED);

	bind_int(s, ":id", id);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_attempt_set_spool(struct ledger *l, int64_t id, int64_t offset, int64_t seq,
			     struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_SET_SPOOL);

	bind_int(s, ":id", id);
	bind_int(s, ":spool_offset", offset);
	bind_int(s, ":spool_seq", seq);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_prequeued_insert(struct ledger *l, int64_t run_id, int64_t number, const char *token,
			    const char *excluded, int64_t now_ms, int64_t *id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_PREQUEUED_INSERT);

	bind_int(s, ":run_id", run_id);
	bind_int(s, ":number", number);
	bind_text(s, ":token", token);
	bind_text(s, ":excluded", excluded);
	bind_int(s, ":created_ms", now_ms);
	if (write_rows(l, s, err) < 0)
		return -1;
	*id = sqlite3_last_insert_rowid(l->db);
	return 0;
}

int ledger_prequeued_find(struct ledger *l, int64_t run_id, struct ledger_attempt *out,
			  struct err *err)
{
	sqlite3_stmt *s = query(l, Q_PREQUEUED_FIND);

	bind_int(s, ":run_id", run_id);
	return read_one(l, s, attempt_columns, out, "no job waits behind the run's attempt", err);
}

int ledger_prequeued_take(struct ledger *l, int64_t id, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_PREQUEUED_TAKE);

	bind_int(s, ":id", id);
	bind_int(s, ":created_ms", now_ms);
	return touching(l, id, write_one(l, s, ERR_INTERNAL, "this attempt is not prequeued", err));
}

int ledger_prequeued_drop(struct ledger *l, int64_t id, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_PREQUEUED_DROP);

	bind_int(s, ":id", id);
	return write_one(l, s, ERR_INTERNAL, "this attempt is not prequeued", err);
}

static int attempt_set_resumed(struct ledger *l, int64_t id, int64_t step, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_ATTEMPT_SET_RESUMED);

	bind_int(s, ":id", id);
	bind_int(s, ":resumed_from_step", step);
	return write_one(l, s, ERR_NOT_FOUND, no_such_attempt, err);
}

int ledger_launch_start(struct ledger *l, int64_t attempt_id, int64_t number, int64_t pid,
			int64_t resumed_from_step, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_START);

	bind_int(s, ":attempt_id", attempt_id);
	bind_int(s, ":number", number);
	bind_int(s, ":pid", pid);
	bind_int(s, ":resumed_from_step", resumed_from_step);
	bind_int(s, ":started_ms", now_ms);
	if (write_rows(l, s, err) < 0)
		return -1;
	return number == 1 ? attempt_set_resumed(l, attempt_id, resumed_from_step, err) : 0;
}

int ledger_launch_end(struct ledger *l, int64_t attempt_id, int64_t number, enum cause cause,
		      int exit_code, int signal, const char *text, int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_END);

	bind_int(s, ":attempt_id", attempt_id);
	bind_int(s, ":number", number);
	bind_text(s, ":cause", cause_name(cause));
	bind_int(s, ":exit_code", exit_code);
	bind_int(s, ":signal", signal);
	bind_text(s, ":text", text);
	bind_int(s, ":ended_ms", now_ms);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_launch_steps(struct ledger *l, int64_t attempt_id, int64_t number,
			const struct ledger_steps *steps, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_STEPS);

	bind_int(s, ":attempt_id", attempt_id);
	bind_int(s, ":number", number);
	bind_int(s, ":first_step", steps->first);
	bind_int(s, ":last_step", steps->last);
	bind_int(s, ":first_ms", steps->first_ms);
	bind_int(s, ":last_ms", steps->last_ms);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_launch_saved(struct ledger *l, int64_t attempt_id, int64_t number, int64_t step,
			int64_t now_ms, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_SAVED);

	bind_int(s, ":attempt_id", attempt_id);
	bind_int(s, ":number", number);
	bind_int(s, ":saved_step", step);
	bind_int(s, ":saved_ms", now_ms);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_launch_set_start(struct ledger *l, int64_t attempt_id, int64_t number, const char *start,
			    struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_SET_START);

	bind_int(s, ":attempt_id", attempt_id);
	bind_int(s, ":number", number);
	bind_text(s, ":start", start);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_launch_end_open(struct ledger *l, int64_t attempt_id, enum cause cause, int64_t now_ms,
			   struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_END_OPEN);

	bind_int(s, ":attempt_id", attempt_id);
	bind_text(s, ":cause", cause_name(cause));
	bind_int(s, ":ended_ms", now_ms);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_launch_each(struct ledger *l, int64_t attempt_id,
		       int (*each)(const struct ledger_launch *launch, void *arg), void *arg,
		       struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_LIST);
	struct ledger_launch launch;
	int got;

	bind_int(s, ":attempt_id", attempt_id);
	while ((got = read_next(l, s, launch_columns, &launch, err)) > 0 && each(&launch, arg) == 0)
		;
	return read_end(s, got);
}

static const struct column past_columns[] = {
	COLUMN(ledger_past_launch, CAUSE, cause),
	COLUMN(ledger_past_launch, INT64, started_ms),
	COLUMN(ledger_past_launch, INT64, ended_ms),
	COLUMN(ledger_past_launch, TEXT, nodes),
	{ NULL, 0, 0 },
};

int ledger_launch_each_since(struct ledger *l, int64_t since_ms,
			     int (*each)(const struct ledger_past_launch *launch, void *arg),
			     void *arg, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_LAUNCH_LIST_SINCE);
	struct ledger_past_launch launch;
	int got;

	bind_int(s, ":since_ms", since_ms);
	while ((got = read_next(l, s, past_columns, &launch, err)) > 0 && each(&launch, arg) == 0)
		;
	return read_end(s, got);
}
