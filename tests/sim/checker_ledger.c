/* SPDX-License-Identifier: MIT */
/* checker_ledger.c - what lbrun acknowledged is in the ledger, once and in order. */
#include "tests/sim/checker_internal.h"

#include <stdio.h>

#include "tests/sim/run_numbers.h"

static int64_t sum_of(int64_t sum, int64_t seq, int64_t step)
{
	return (int64_t)((uint64_t)sum * 31 + (uint64_t)seq * 1000003 + (uint64_t)step);
}

struct reading {
	struct check *check;
	struct view *view;
	int run;
	int64_t after_id;
	int rows;
};

static int on_row(const struct ledger_attempt *row, void *arg)
{
	attempt_of(((struct reading *)arg)->view, row->number)->row_id = row->id;
	return 0;
}

static int on_metric(const struct ledger_metric *m, void *arg)
{
	struct reading *r = arg;

	r->after_id = m->id;
	r->rows++;
	for (int64_t n = r->view->count - 1; n >= 0; n--) {
		struct attempt_view *a = &r->view->attempts[n];

		if (a->row_id != m->attempt_id)
			continue;
		if (m->seq <= a->last_seq)
			broken(r->check, r->run, INT64_MAX,
			       "progress is in the ledger out of order");
		a->last_seq = m->seq;
		a->stored = sum_of(a->stored, m->seq, m->step);
		break;
	}
	return 0;
}

static void read_run(struct check *c, int run)
{
	struct reading r = { .check = c, .view = &c->views[run], .run = run, .rows = 1 };
	struct ledger_run row;
	char name[16];
	int64_t id;

	snprintf(name, sizeof(name), "r%02d", run);
	if (ledger_run_find(c->end->ledger, name, &row, NULL) < 0) {
		broken(c, run, INT64_MAX, "an acknowledged run is not in the ledger");
		return;
	}
	id = row.id;
	if (!run_state_is_final(row.state) || row.state != r.view->state)
		broken(c, run, INT64_MAX, "a run has not come to its end");
	ledger_attempt_each(c->end->ledger, id, on_row, &r, NULL);
	while (r.rows > 0) {
		r.rows = 0;
		ledger_metric_each(c->end->ledger, id, r.after_id, 1000, on_metric, &r, NULL);
	}
}

/* Of an attempt whose trainer is gone lbd must have it all, but for what an lbrun with a full disk
 * still held when Slurm had ended its job, and wrote later. One that it gave up while the trainer
 * lived on, unknown to the scheduler, it need not have heard to its end. */
static bool is_due(const struct check *c, const struct attempt_view *a, int64_t at_ms)
{
	if (a->ended_ms == 0)
		return true;
	if (a->trainer_gone_ms <= a->ended_ms)
		return at_ms <= a->ended_ms;
	return at_ms < a->ended_ms - SLACK_MS - c->end->spool_ms;
}

static void check_step(struct check *c, const struct fact *f)
{
	struct attempt_view *a = attempt_of(&c->views[f->run], f->attempt);

	if (f->a <= a->last_seq)
		a->told = sum_of(a->told, f->a, f->b);
	else if (is_due(c, a, f->at_ms))
		broken(c, f->run, (a->ended_ms ? a->ended_ms : f->at_ms) + SLACK_MS,
		       "acknowledged progress is not in the ledger");
}

/* The same of checkpoints: the ledger's newest is the newest that it must have heard of, or
 * newer. */
static void check_checkpoints(struct check *c, int run)
{
	struct ledger_checkpoint newest = { .step = -1 };
	struct ledger_run row;
	char name[16];

	snprintf(name, sizeof(name), "r%02d", run);
	if (ledger_run_find(c->end->ledger, name, &row, NULL) == 0)
		ledger_checkpoint_newest(c->end->ledger, row.id, &newest, NULL);
	if (newest.step < c->views[run].checkpoint)
		broken(c, run, INT64_MAX, "the newest checkpoint is not in the ledger");
}

static void note_checkpoint(struct check *c, const struct fact *f)
{
	struct view *v = &c->views[f->run];

	if (f->b > v->checkpoint && is_due(c, attempt_of(v, f->attempt), f->at_ms))
		v->checkpoint = f->b;
}

static void check_sums(struct check *c, int run)
{
	const struct view *v = &c->views[run];

	for (int64_t n = 0; n < v->count; n++)
		if (v->attempts[n].told != v->attempts[n].stored)
			broken(c, run, INT64_MAX,
			       "progress in the ledger is not what was acknowledged");
}

void check_ledger(struct check *c)
{
	for (int run = 0; run < c->end->runs; run++)
		if (c->views[run].is_acked)
			read_run(c, run);
	for (size_t i = 0; i < c->history->count; i++)
		if (task_of(c->history->facts[i].run) >= 0)
			continue; /* lbd hears of tasks by their marks alone */
		else if (c->history->facts[i].kind == FACT_STEP)
			check_step(c, &c->history->facts[i]);
		else if (c->history->facts[i].kind == FACT_CHECKPOINT)
			note_checkpoint(c, &c->history->facts[i]);
	for (int run = 0; run < c->end->runs; run++)
		check_sums(c, run);
	for (int run = 0; run < c->end->runs; run++)
		check_checkpoints(c, run);
}
