/* SPDX-License-Identifier: MIT */
/* top.c - run objects, and beside each what only lbd knows: launch, pace, newest steps, the time
 * limit of its job. */
#include "daemon/runs/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "daemon/job/batch_job.h"
#include "daemon/runs/views.h"

enum {
	ENDED_S = 24 * 3600, /* who ended longer ago is left out, unless asked for */
	RECENT_STEPS = 64,
	RECENT_RUNS = 256, /* steps are read of so many running runs; an answer is to be quick */
};

struct listing {
	struct lbd *lbd;
	struct run **live; /* by id */
	size_t live_count;
	json_t *list;
	int with_steps; /* runs whose steps were read */
	struct err *err;
};

static void note_live(struct run *run, void *arg)
{
	struct listing *l = arg;

	l->live = xrealloc(l->live, (l->live_count + 1) * sizeof(struct run *));
	l->live[l->live_count++] = run;
}

static int by_id(const void *a, const void *b)
{
	int64_t x = (*(struct run *const *)a)->id, y = (*(struct run *const *)b)->id;

	return (x > y) - (x < y);
}

static struct run *live_find(const struct listing *l, int64_t id)
{
	size_t from = 0, to = l->live_count;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (l->live[middle]->id == id)
			return l->live[middle];
		if (l->live[middle]->id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

/* The newest first, as they are read. */
struct recent {
	double losses[RECENT_STEPS], tokens_per_s[RECENT_STEPS];
	int count, speeds;
};

static int add_step(const struct ledger_metric *m, void *arg)
{
	struct recent *recent = arg;
	json_t *fields = js_parse(m->fields, strlen(m->fields), NULL);
	double speed = js_real(fields, "tokens_per_s", NAN);

	json_decref(fields);
	recent->losses[recent->count++] = m->loss;
	if (isfinite(speed))
		recent->tokens_per_s[recent->speeds++] = speed;
	return 0;
}

static double median(const double *values, int count)
{
	double sorted[RECENT_STEPS];

	for (int i = 0, j; i < count; i++) {
		for (j = i; j > 0 && sorted[j - 1] > values[i]; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = values[i];
	}
	return count ? sorted[count / 2] : NAN;
}

/* Four digits are enough for a picture, and thousands of numbers are sent. */
static json_t *for_picture(double loss)
{
	char text[32];

	if (!isfinite(loss))
		return json_null();
	snprintf(text, sizeof(text), "%.4g", loss);
	return json_real(strtod(text, NULL));
}

static int add_recent(struct ledger *ledger, int64_t run_id, json_t *o, struct err *err)
{
	struct recent recent = { .count = 0 };
	json_t *losses = json_array();

	json_object_set_new(o, "losses", losses);
	if (ledger_metric_tail(ledger, run_id, RECENT_STEPS, add_step, &recent, err) < 0)
		return -1;
	for (int i = recent.count - 1; i >= 0; i--)
		json_array_append_new(losses, for_picture(recent.losses[i]));
	js_set_real(o, "median_tokens_per_s", median(recent.tokens_per_s, recent.speeds));
	return 0;
}

/* The last one wins. */
static int note_launch(const struct ledger_launch *l, void *arg)
{
	json_t *o = arg;
	int64_t steps = l->last_step - l->first_step;

	js_set_int(o, "launch", l->number);
	js_set_time(o, "launched", l->started_ms);
	js_set_time(o, "last_step_time", l->last_step_ms);
	js_set_real(o, "step_s",
		    l->first_step >= 0 && steps > 0
			    ? (double)(l->last_step_ms - l->first_step_ms) / 1e3 / (double)steps
			    : NAN);
	return 0;
}

/* Of a live run whose job's limit and start are known: when it will be cut short. */
static void add_limit(const struct lbd *lbd, struct run *run, json_t *o)
{
	const struct attempt *a = &run->attempt;

	if (run->gpus < 0)
		run->gpus = batch_job_gpus(&lbd->config, run);

	if (a->last_seen.limit_time > 0 && !run_is_array(run)) /* a task's is not all's */
		js_set_time(o, "limit", a->last_seen.limit_time * 1000);
	js_set_int(o, "gpus", run->gpus);
}

/* Of the last minutes, or nothing. */
static void add_gpu_use(const struct run *run, json_t *o)
{
	enum { FRESH_MS = 5 * 60 * 1000, MOST = 256 };
	json_t *list;

	if (run->gpu_use_ms == 0 || clock_wall_ms() - run->gpu_use_ms > FRESH_MS)
		return;
	list = json_array();
	for (size_t i = 0; i < run->gpu_count && i < MOST; i++)
		json_array_append_new(list, run->gpu_use[i] < 0 ? json_null()
								: json_integer(run->gpu_use[i]));
	json_object_set_new(o, "gpu_use", list);
}

static int add_attempt(struct listing *l, int64_t run_id, bool is_running, json_t *o)
{
	struct ledger_attempt attempt;
	struct err none = { 0 };
	int64_t id;

	if (ledger_attempt_newest(l->lbd->ledger, run_id, &attempt, &none) < 0)
		return 0; /* not submitted yet */
	id = attempt.id;
	js_set_int(o, "attempt", attempt.number);
	js_set_time(o, "attempt_started", attempt.started_ms);
	js_set_str(o, "nodes", attempt.nodes);
	if (!is_running)
		return 0;
	if (ledger_launch_each(l->lbd->ledger, id, note_launch, o, l->err) < 0)
		return -1;
	return l->with_steps++ < RECENT_RUNS ? add_recent(l->lbd->ledger, run_id, o, l->err) : 0;
}

static int add_run(const struct ledger_run *run, void *arg)
{
	struct listing *l = arg;
	int64_t id = run->id; /* its words are gone with the next query */
	bool is_running = run->state == RUN_RUNNING || run->state == RUN_STOPPING;
	json_t *o = view_run(l->lbd->ledger, run, false, l->err);
	struct run *live = live_find(l, id);
	const char *waits_for = live ? engine_run_waits_for(l->lbd->engine, live) : "";

	if (!o)
		return -1;
	json_array_append_new(l->list, o);
	js_set_str(o, "waits_for", waits_for[0] ? waits_for : NULL);
	if (live)
		add_limit(l->lbd, live, o);
	if (live && is_running)
		add_gpu_use(live, o);
	return add_attempt(l, id, is_running, o);
}

json_t *top_answer(struct request *r, struct err *err)
{
	struct listing l = { .lbd = r->lbd, .list = json_array(), .err = err };
	int64_t ended_s = js_int(r->args, "ended", ENDED_S), now_ms = clock_wall_ms();
	int rc;

	if (ended_s < 0 || ended_s > now_ms / 1000)
		ended_s = now_ms / 1000;
	engine_each_live(r->lbd->engine, note_live, &l);
	if (l.live_count > 0)
		qsort(l.live, l.live_count, sizeof(struct run *), by_id);
	rc = ledger_run_each_since(r->lbd->ledger, now_ms - ended_s * 1000, add_run, &l, err);
	free(l.live);
	if (rc == 0)
		return json_pack("{s:f, s:o}", "time", (double)now_ms / 1e3, "runs", l.list);
	json_decref(l.list);
	return NULL;
}
