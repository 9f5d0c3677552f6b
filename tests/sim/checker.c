/* SPDX-License-Identifier: MIT */
/* checker.c - the promises, each as a rule over the history. It knows nothing of how lbd works.
 *
 * The fencing window: an lbrun looks for newer claims every 2 s, so one that was frozen and thaws
 * may let its trainer go on for that long beside the new one; otherwise there is no overlap. */
#include "tests/sim/checker.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum {
	FENCE_MS = 3 * 1000,		/* two trainers of one run at most for so long */
	STOPPED_MS = 60 * 1000,		/* a run that is over has no trainer after this */
	SLACK_MS = 60 * 1000,
	HISTORY_LINES = 100,
	STORY_LINES = 3,		/* broken promises told in full */
};

struct attempt_view {
	int64_t job_id, submit_time;	/* as the ledger has it */
	int64_t ended_ms, trainer_gone_ms;
	int64_t row_id, last_seq;	/* of the ledger: id of the row, newest step line */
	int64_t told, stored;		/* step lines up to that one, as a sum that shows their order */
};

struct view {			/* of one run */
	struct attempt_view *attempts;
	int64_t count;
	bool is_acked;
	enum run_state state;
	int64_t final_ms;		/* 0: it is not over */
	int64_t backoff_up_ms;		/* lbd's uptime when a pause began; -1: none */
	int trainers;
	int64_t both_ms;		/* since when there are two; 0: there are not */
	/* since the run was created or restarted */
	bool completed, may_be_killed, may_fail;
	int64_t bad, surely_bad;	/* launches without progress since the last progress */
};

struct check {
	const struct history *history;
	const struct world_end *end;
	FILE *out;
	struct view *views;
	int64_t up_ms, up_since_ms;	/* of lbd */
	bool is_up;
	int broken;
};

static void broken(struct check *c, int run, int64_t at_ms, const char *promise)
{
	if (c->broken++ >= STORY_LINES)
		return;
	fprintf(c->out, "seed %llu: run r%02d: %s\n", (unsigned long long)c->end->seed, run, promise);
	history_print(c->history, run, at_ms, HISTORY_LINES, c->out);
}

static struct attempt_view *attempt_of(struct view *v, int64_t number)
{
	if (number >= v->count) {
		int64_t count = 2 * number + 8;

		v->attempts = xrealloc(v->attempts, (size_t)count * sizeof(*v->attempts));
		memset(v->attempts + v->count, 0, (size_t)(count - v->count) * sizeof(*v->attempts));
		v->count = count;
	}
	return &v->attempts[number];
}

static int64_t uptime(const struct check *c, int64_t now_ms)
{
	return c->up_ms + (c->is_up ? now_ms - c->up_since_ms : 0);
}

/* --- trainers ------------------------------------------------------------------------------------ */

static void on_trainer(struct check *c, struct view *v, const struct fact *f, int change)
{
	v->trainers += change;
	if (v->trainers > 1 && v->both_ms == 0)
		v->both_ms = f->at_ms;
	if (v->trainers <= 1 && v->both_ms != 0) {
		if (f->at_ms - v->both_ms > FENCE_MS)
			broken(c, f->run, f->at_ms, "two trainers at the same time");
		v->both_ms = 0;
	}
	if (change > 0 && v->final_ms && f->kind == FACT_TRAINER_STARTED)
		broken(c, f->run, f->at_ms, "a trainer was started although the run is over");
	if (change < 0 && v->final_ms && f->at_ms - v->final_ms > STOPPED_MS &&
	    f->kind == FACT_TRAINER_ENDED)
		broken(c, f->run, f->at_ms, "a trainer went on although the run was over");
}

static void on_trainer_ended(struct check *c, struct view *v, const struct fact *f)
{
	enum cause cause = (enum cause)(f->b % 100);
	bool is_own_fault = cause == CAUSE_ERROR || cause == CAUSE_CRASH || cause == CAUSE_OOM;

	attempt_of(v, f->attempt)->trainer_gone_ms = f->at_ms;
	v->completed |= cause == CAUSE_COMPLETED;
	v->may_fail |= f->b >= 1000;
	if (f->b / 100 % 10 == 0) {
		v->bad++;
		v->surely_bad += is_own_fault;
	}
	/* the last attempt may begin with one failure less than allowed */
	if (v->surely_bad > c->end->max_without_progress + c->end->in_place)
		broken(c, f->run, f->at_ms, "more launches without progress than the budget allows");
}

/* --- states ------------------------------------------------------------------------------------------ */

static void begin_anew(struct view *v)
{
	v->final_ms = 0;
	v->completed = v->may_be_killed = v->may_fail = false;
	v->bad = v->surely_bad = 0;
}

static void on_moved(struct check *c, struct view *v, const struct fact *f)
{
	v->state = (enum run_state)f->a;
	v->backoff_up_ms = v->state == RUN_BACKOFF ? uptime(c, f->at_ms) : -1;
	v->final_ms = run_state_is_final(v->state) ? f->at_ms : 0;
	if (v->state == RUN_CREATED)
		begin_anew(v);
	if (v->state == RUN_COMPLETED && !v->completed)
		broken(c, f->run, f->at_ms, "called completed, but no trainer was done");
	if (v->state == RUN_KILLED && !v->may_be_killed)
		broken(c, f->run, f->at_ms, "called killed, but nobody asked for it");
	if (v->state == RUN_FAILED && v->bad < c->end->max_without_progress && !v->may_fail)
		broken(c, f->run, f->at_ms, "gave up before the restart budget was used");
}

static void on_intent(struct check *c, struct view *v, const struct fact *f)
{
	if (v->backoff_up_ms >= 0 &&
	    uptime(c, f->at_ms) - v->backoff_up_ms > c->end->backoff_max_ms + SLACK_MS)
		broken(c, f->run, f->at_ms, "a pause was longer than restart.backoff_max");
	v->backoff_up_ms = -1;
}

static void on_job_started(struct check *c, struct view *v, const struct fact *f)
{
	const struct attempt_view *a = attempt_of(v, f->attempt);

	if (a->job_id != f->a || a->submit_time != f->b)
		broken(c, f->run, f->at_ms, "a job started that the ledger does not have");
}

static void on_lbd(struct check *c, const struct fact *f)
{
	if (f->kind == FACT_DAEMON_UP) {
		c->is_up = true;
		c->up_since_ms = f->at_ms;
	} else if (f->kind == FACT_DAEMON_DOWN) {
		c->up_ms = uptime(c, f->at_ms);
		c->is_up = false;
	}
}

static void on_fact(struct check *c, struct view *v, const struct fact *f)
{
	struct attempt_view *a = attempt_of(v, f->attempt);

	switch ((enum fact_kind)f->kind) {
	case FACT_SUBMITTED:
		v->is_acked = true;
		break;
	case FACT_WANTED:
		v->may_be_killed |= f->a != ORDER_RUN;
		break;
	case FACT_JOB_CANCELLED:
		v->may_be_killed = true;
		break;
	case FACT_REFUSED:
		v->may_fail = true;
		break;
	case FACT_INTENT:
		on_intent(c, v, f);
		break;
	case FACT_ADOPTED:
		a->job_id = f->a;
		a->submit_time = f->b;
		break;
	case FACT_CHECKPOINT:
		v->surely_bad = 0;
		if (a->ended_ms == 0)
			v->bad = 0;
		break;
	case FACT_ENDED:
		a->ended_ms = f->at_ms;
		v->bad += a->trainer_gone_ms == 0;	/* for all that lbd can know */
		break;
	case FACT_MOVED:
		on_moved(c, v, f);
		break;
	case FACT_JOB_STARTED:
		on_job_started(c, v, f);
		break;
	case FACT_TRAINER_STARTED:
	case FACT_TRAINER_THAWED:
		on_trainer(c, v, f, 1);
		break;
	case FACT_TRAINER_FROZEN:
		on_trainer(c, v, f, -1);
		break;
	case FACT_TRAINER_ENDED:
		on_trainer(c, v, f, -1);
		on_trainer_ended(c, v, f);
		break;
	default:
		break;
	}
}

/* --- progress: what lbrun acknowledged is in the ledger, once and in order ------------------------- */

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
			broken(r->check, r->run, INT64_MAX, "progress is in the ledger out of order");
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

/* lbd need not read on once it has given an attempt up; what was there by then it must have. */
static bool is_due(const struct check *c, const struct attempt_view *a, int64_t at_ms)
{
	int64_t margin_ms = SLACK_MS + (a->trainer_gone_ms > a->ended_ms ? c->end->spool_ms : 0);

	return a->ended_ms == 0 || at_ms < a->ended_ms - margin_ms;
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

/* --- the end ------------------------------------------------------------------------------------------- */

static void check_end(struct check *c, int run)
{
	const struct view *v = &c->views[run];

	if (v->trainers > 0)
		broken(c, run, INT64_MAX, "a trainer lives on at the end");
	for (int64_t n = 0; n < v->count; n++)
		if (v->attempts[n].told != v->attempts[n].stored)
			broken(c, run, INT64_MAX, "progress in the ledger is not what was acknowledged");
}

static void check_rates(struct check *c)
{
	const struct world_end *e = c->end;

	if (e->live_jobs > 0)
		broken(c, -1, INT64_MAX, "a job is left over at the end");
	if (e->polls > e->up_ms / 1000 || e->calls > e->up_ms / 1000)
		broken(c, -1, INT64_MAX, "the scheduler is called more than once a second");
	if (e->turns > e->up_ms / 1000)
		broken(c, -1, INT64_MAX, "lbd is busy without need");
}

int history_check(const struct history *h, const struct world_end *end, FILE *out)
{
	struct check c = { .history = h, .end = end, .out = out };

	c.views = xcalloc((size_t)end->runs, sizeof(*c.views));
	for (int run = 0; run < end->runs; run++)
		c.views[run].backoff_up_ms = -1;
	for (size_t i = 0; i < h->count; i++) {
		if (h->facts[i].run >= 0)
			on_fact(&c, &c.views[h->facts[i].run], &h->facts[i]);
		else
			on_lbd(&c, &h->facts[i]);
	}
	for (int run = 0; run < end->runs; run++)
		if (c.views[run].is_acked)
			read_run(&c, run);
	for (size_t i = 0; i < h->count; i++)
		if (h->facts[i].kind == FACT_STEP)
			check_step(&c, &h->facts[i]);
	for (int run = 0; run < end->runs; run++) {
		check_end(&c, run);
		free(c.views[run].attempts);
	}
	check_rates(&c);
	free(c.views);
	return c.broken;
}
