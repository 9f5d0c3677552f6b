/* SPDX-License-Identifier: MIT */
/* ledger_progress.c - the queries about what a run leaves behind as it goes: checkpoints, metrics,
 * events. */
#include <math.h>

#include "sql/ledger_internal.h"

static const struct column checkpoint_columns[] = {
	COLUMN(ledger_checkpoint, INT64, run_id),  COLUMN(ledger_checkpoint, INT64, step),
	COLUMN(ledger_checkpoint, INT64, attempt), COLUMN(ledger_checkpoint, TEXT, path),
	COLUMN(ledger_checkpoint, TEXT, text),     COLUMN(ledger_checkpoint, BOOL, valid),
	COLUMN(ledger_checkpoint, INT64, time_ms), { NULL, 0, 0 },
};

static const struct column metric_columns[] = {
	COLUMN(ledger_metric, INT64, id),         COLUMN(ledger_metric, INT64, run_id),
	COLUMN(ledger_metric, INT64, attempt_id), COLUMN(ledger_metric, INT64, seq),
	COLUMN(ledger_metric, INT64, launch),     COLUMN(ledger_metric, INT64, step),
	COLUMN(ledger_metric, INT64, time_ms),    COLUMN(ledger_metric, REAL, loss),
	COLUMN(ledger_metric, TEXT, fields),      { NULL, 0, 0 },
};

static const struct column event_columns[] = {
	COLUMN(ledger_event, INT64, id),
	COLUMN(ledger_event, INT64, run_id),
	COLUMN(ledger_event, INT64, time_ms),
	COLUMN(ledger_event, TEXT, kind),
	COLUMN(ledger_event, TEXT, actor),
	COLUMN(ledger_event, TEXT, text),
	COLUMN(ledger_event, INT64, attempt),
	COLUMN(ledger_event, TEXT, run),
	{ NULL, 0, 0 },
};

int ledger_checkpoint_put(struct ledger *l, const struct ledger_checkpoint *c, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CHECKPOINT_PUT);

	bind_row(s, checkpoint_columns, c);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_checkpoint_newest(struct ledger *l, int64_t run_id, struct ledger_checkpoint *out,
			     struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CHECKPOINT_NEWEST);

	bind_int(s, ":run_id", run_id);
	return read_one(l, s, checkpoint_columns, out, "the run has no checkpoint", err);
}

int ledger_checkpoint_of_step(struct ledger *l, int64_t run_id, int64_t step,
			      struct ledger_checkpoint *out, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CHECKPOINT_OF_STEP);

	bind_int(s, ":run_id", run_id);
	bind_int(s, ":step", step);
	return read_one(l, s, checkpoint_columns, out, "the run has no checkpoint of this step",
			err);
}

int ledger_checkpoint_set_aside(struct ledger *l, int64_t run_id, int64_t step, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_CHECKPOINT_SET_ASIDE);

	bind_int(s, ":run_id", run_id);
	bind_int(s, ":step", step);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_metric_put(struct ledger *l, const struct ledger_metric *m, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_METRIC_PUT);

	bind_row(s, metric_columns, m);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

enum {
	THIN_FROM = LEDGER_METRICS_MAX * 9 / 10, /* room for what comes before the next time */
	SPARSE_MAX = LEDGER_METRICS_MAX / 4,
};

/* Stretches of 2^shift steps: doubling them keeps the rows that were kept before in their
 * places. */
int ledger_metric_shift(int64_t last_step)
{
	int shift = 0;

	while (last_step >> shift >= SPARSE_MAX)
		shift++;
	return shift;
}

int ledger_metric_thin(struct ledger *l, int64_t run_id, struct err *err)
{
	static const struct column extent[] = {
		COLUMN(ledger_metric, INT64, id),
		COLUMN(ledger_metric, INT64, step),
		{ NULL, 0, 0 },
	};
	sqlite3_stmt *s = query(l, Q_METRIC_EXTENT);
	struct ledger_metric all = { 0 };
	int got;

	bind_int(s, ":run_id", run_id);
	got = read_next(l, s, extent, &all, err);
	if (read_end(s, got > 0 ? 0 : got) < 0)
		return -1;
	if (all.id <= THIN_FROM)
		return 0;
	s = query(l, Q_METRIC_THIN);
	bind_int(s, ":run_id", run_id);
	bind_int(s, ":dense", LEDGER_METRICS_DENSE);
	bind_int(s, ":shift", ledger_metric_shift(all.step));
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

static int metrics_read(struct ledger *l, sqlite3_stmt *s, int64_t run_id, int64_t limit,
			int (*each)(const struct ledger_metric *m, void *arg), void *arg,
			struct err *err)
{
	struct ledger_metric metric;
	int got;

	bind_int(s, ":run_id", run_id);
	bind_int(s, ":limit", limit);
	while ((got = read_next(l, s, metric_columns, &metric, err)) > 0 && each(&metric, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_metric_each(struct ledger *l, int64_t run_id, int64_t after_id, int64_t limit,
		       int (*each)(const struct ledger_metric *m, void *arg), void *arg,
		       struct err *err)
{
	sqlite3_stmt *s = query(l, Q_METRIC_LIST);

	bind_int(s, ":after_id", after_id);
	return metrics_read(l, s, run_id, limit, each, arg, err);
}

int ledger_metric_tail(struct ledger *l, int64_t run_id, int64_t limit,
		       int (*each)(const struct ledger_metric *m, void *arg), void *arg,
		       struct err *err)
{
	return metrics_read(l, query(l, Q_METRIC_TAIL), run_id, limit, each, arg, err);
}

int ledger_metric_last(struct ledger *l, int64_t run_id, int64_t *id, struct err *err)
{
	static const struct column only_id[] = { COLUMN(ledger_metric, INT64, id), { NULL, 0, 0 } };
	sqlite3_stmt *s = query(l, Q_METRIC_LAST);
	struct ledger_metric metric = { 0 };
	int got;

	bind_int(s, ":run_id", run_id);
	got = read_next(l, s, only_id, &metric, err);
	*id = metric.id;
	return read_end(s, got > 0 ? 0 : got);
}

int ledger_metric_least_loss(struct ledger *l, int64_t run_id, double *out, struct err *err)
{
	static const struct column only_loss[] = {
		COLUMN(ledger_metric, REAL, loss),
		{ NULL, 0, 0 },
	};
	sqlite3_stmt *s = query(l, Q_METRIC_LEAST_LOSS);
	struct ledger_metric metric = { .loss = NAN };
	int got;

	bind_int(s, ":run_id", run_id);
	got = read_next(l, s, only_loss, &metric, err);
	*out = metric.loss;
	return read_end(s, got > 0 ? 0 : got);
}

int ledger_event_put(struct ledger *l, const struct ledger_event *e, struct err *err)
{
	sqlite3_stmt *s = query(l, Q_EVENT_PUT);

	bind_row(s, event_columns, e);
	return write_rows(l, s, err) < 0 ? -1 : 0;
}

int ledger_event_each(struct ledger *l, int64_t run_id, int64_t after_id, int64_t limit,
		      int (*each)(const struct ledger_event *e, void *arg), void *arg,
		      struct err *err)
{
	sqlite3_stmt *s = query(l, run_id ? Q_EVENT_LIST : Q_EVENT_LIST_ALL);
	struct ledger_event event;
	int got;

	if (run_id)
		bind_int(s, ":run_id", run_id);
	bind_int(s, ":after_id", after_id);
	bind_int(s, ":limit", limit);
	while ((got = read_next(l, s, event_columns, &event, err)) > 0 && each(&event, arg) == 0)
		;
	return read_end(s, got);
}

int ledger_event_newest_ms(struct ledger *l, int64_t run_id, const char *kind, int64_t *time_ms,
			   struct err *err)
{
	static const struct column only_time[] = { COLUMN(ledger_event, INT64, time_ms),
						   { NULL, 0, 0 } };
	sqlite3_stmt *s = query(l, Q_EVENT_NEWEST_MS);
	struct ledger_event event = { 0 };
	int got;

	bind_int(s, ":run_id", run_id);
	bind_text(s, ":kind", kind);
	got = read_next(l, s, only_time, &event, err);
	*time_ms = event.time_ms;
	return read_end(s, got > 0 ? 0 : got);
}

int ledger_event_last(struct ledger *l, int64_t *id, struct err *err)
{
	static const struct column only_id[] = { COLUMN(ledger_event, INT64, id), { NULL, 0, 0 } };
	sqlite3_stmt *s = query(l, Q_EVENT_LAST);
	struct ledger_event event = { 0 };
	int got = read_next(l, s, only_id, &event, err);

	*id = event.id;
	return read_end(s, got > 0 ? 0 : got);
}
