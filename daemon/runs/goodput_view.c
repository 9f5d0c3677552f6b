/* SPDX-License-Identifier: MIT */
/* goodput_view.c - rows → goodput.c → JSON. */
#include "daemon/runs/goodput_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "daemon/job/batch_job.h"
#include "daemon/runs/goodput.h"
#include "daemon/base/rate.h"

/* Where the run was over, and was restarted later. */
struct idle {
	int64_t from_ms, to_ms;
};

/* What one of a launch took, phase by phase. */
struct start {
	int64_t at_ms;
	char *phases; /* JSON, as the ledger has it */
};

struct goodput_history {
	int64_t created_ms, ended_ms; /* 0 = it lives */
	struct goodput_attempt *attempts;
	int64_t *ids;
	struct goodput_launch **owned; /* the launches of each attempt */
	size_t count;
	struct goodput_launch *launches; /* of the attempt that is being read */
	size_t launch_count;
	struct start *starts;
	size_t start_count;
	struct idle *idles;
	size_t idle_count;
	int64_t over_ms; /* while events are read: since when it was over; 0: it is not */
};

static int add_attempt(const struct ledger_attempt *a, void *arg)
{
	struct goodput_history *h = arg;

	h->attempts = xrealloc(h->attempts, (h->count + 1) * sizeof(h->attempts[0]));
	h->ids = xrealloc(h->ids, (h->count + 1) * sizeof(h->ids[0]));
	h->attempts[h->count] = (struct goodput_attempt){
		.cause = a->cause,
		.created_ms = a->created_ms,
		.started_ms = a->started_ms,
		.ended_ms = a->ended_ms,
	};
	h->owned = xrealloc(h->owned, (h->count + 1) * sizeof(struct goodput_launch *));
	h->owned[h->count] = NULL;
	h->ids[h->count++] = a->id;
	return 0;
}

static int add_launch(const struct ledger_launch *l, void *arg)
{
	struct goodput_history *h = arg;

	h->launches = xrealloc(h->launches, (h->launch_count + 1) * sizeof(h->launches[0]));
	h->launches[h->launch_count++] = (struct goodput_launch){
		.started_ms = l->started_ms,
		.ended_ms = l->ended_ms,
		.cause = l->cause,
		.resumed_from_step = l->resumed_from_step,
		.first_step_ms = l->first_step_ms,
		.last_step_ms = l->last_step_ms,
		.saved_ms = l->saved_ms,
	};
	if (l->start[0]) {
		h->starts = xrealloc(h->starts, (h->start_count + 1) * sizeof(h->starts[0]));
		h->starts[h->start_count++] = (struct start){ l->started_ms, xstrdup(l->start) };
	}
	return 0;
}

static int read_attempts(struct ledger *ledger, int64_t run_id, struct goodput_history *h,
			 struct err *err)
{
	int rc = ledger_attempt_each(ledger, run_id, add_attempt, h, err);

	for (size_t i = 0; i < h->count && rc == 0; i++) {
		h->launches = NULL;
		h->launch_count = 0;
		rc = ledger_launch_each(ledger, h->ids[i], add_launch, h, err);
		h->owned[i] = h->launches;
		h->attempts[i].launches = h->launches;
		h->attempts[i].launch_count = h->launch_count;
	}
	return rc;
}

static int note_event(const struct ledger_event *e, void *arg)
{
	struct goodput_history *h = arg;

	if (run_state_is_final(run_state_from_name(e->kind))) {
		h->over_ms = e->time_ms;
	} else if (strcmp(e->kind, "restarted") == 0 && h->over_ms > 0) {
		h->idles = xrealloc(h->idles, (h->idle_count + 1) * sizeof(h->idles[0]));
		h->idles[h->idle_count++] = (struct idle){ h->over_ms, e->time_ms };
		h->over_ms = 0;
	}
	return 0;
}

struct goodput_history *goodput_history_read(struct ledger *ledger, const struct ledger_run *run,
					     struct err *err)
{
	struct goodput_history *h = xcalloc(1, sizeof(*h));
	int64_t id = run->id;

	h->created_ms = run->created_ms;
	h->ended_ms = run_state_is_final(run->state) ? run->ended_ms : 0;
	if (read_attempts(ledger, id, h, err) == 0 &&
	    ledger_event_each(ledger, id, 0, INT64_MAX, note_event, h, err) == 0)
		return h;
	goodput_history_free(h);
	return NULL;
}

void goodput_history_free(struct goodput_history *h)
{
	for (size_t i = 0; h && i < h->count; i++)
		free(h->owned[i]);
	if (!h)
		return;
	for (size_t i = 0; i < h->start_count; i++)
		free(h->starts[i].phases);
	free(h->starts);
	free(h->owned);
	free(h->attempts);
	free(h->ids);
	free(h->idles);
	free(h);
}

void goodput_history_count(const struct goodput_history *h, int64_t since_ms, int64_t until_ms,
			   struct goodput *out)
{
	int64_t end_ms = h->ended_ms && h->ended_ms < until_ms ? h->ended_ms : until_ms;

	goodput_count(h->attempts, h->count, h->created_ms, since_ms, end_ms, out);
	for (size_t i = 0; i < h->idle_count; i++)
		goodput_leave_out(out, h->idles[i].from_ms, h->idles[i].to_ms, since_ms, end_ms);
}

int64_t goodput_gpus(const struct lbd *lbd, const char *run_dir, struct err *err)
{
	struct run job = { 0 };
	struct err why = { 0 };
	int64_t gpus;

	if (lbd->world.spec(lbd->world.self, run_dir, &job.spec, &why) < 0)
		return why.code == ERR_NOT_FOUND ? 0 : err_set(err, why.code, "%s", why.text);
	job.dir = xstrdup(run_dir);
	gpus = batch_job_gpus(&lbd->config, &job);
	free(job.dir);
	run_spec_clear(&job.spec);
	return gpus;
}

/* --- the answer ------------------------------------------------------------------------------- */

static json_t *view_causes(const struct goodput *g)
{
	json_t *causes = json_object();

	for (int i = CAUSE_NONE + 1; i < CAUSE_COUNT; i++) {
		json_t *o;

		if (g->ends[i] == 0 && g->wasted_ms[i] == 0)
			continue;
		o = json_object();
		js_set_int(o, "launches", g->ends[i]);
		js_set_real(o, "hours", (double)g->wasted_ms[i] / 3600e3);
		json_object_set_new(causes, cause_name((enum cause)i), o);
	}
	return causes;
}

static json_t *view(const struct goodput *g, int64_t gpus)
{
	json_t *o = json_object(), *hours = json_object(), *gpu_hours = json_object();
	double sum = 0;

	for (int i = 0; i < SPENT_COUNT; i++) {
		double h = (double)g->ms[i] / 3600e3;
		double of_gpus = spent_holds_nodes((enum spent)i) ? h * (double)gpus : 0;

		js_set_real(hours, spent_name((enum spent)i), h);
		js_set_real(gpu_hours, spent_name((enum spent)i), of_gpus);
		sum += of_gpus;
	}
	js_set_real(o, "ettr", g->ettr);
	js_set_real(o, "hours_total", (double)g->total_ms / 3600e3);
	json_object_set_new(o, "hours", hours);
	js_set_int(o, "gpus", gpus);
	json_object_set_new(o, "causes", view_causes(g));
	js_set_int(o, "interruptions", goodput_interruptions(g));
	js_set_real(o, "gpu_hours_total", sum);
	json_object_set_new(o, "gpu_hours", gpu_hours);
	return o;
}

/* Of launches that began between these two. */
static json_t *view_starts(const struct goodput_history *h, int64_t since_ms, int64_t until_ms,
			   int64_t gpus)
{
	json_t *o = json_object(), *hours = json_object(), *seconds;
	int64_t count = 0;
	double sum = 0;

	for (size_t i = 0; i < h->start_count; i++) {
		const char *text = h->starts[i].phases, *name;
		json_t *phases;

		if (h->starts[i].at_ms < since_ms || h->starts[i].at_ms >= until_ms)
			continue;
		phases = js_parse(text, strlen(text), NULL);
		count++;
		json_object_foreach(phases, name, seconds) {
			double h_of = json_number_value(seconds) / 3600;

			js_set_real(hours, name, js_real(hours, name, 0) + h_of);
			sum += h_of;
		}
		json_decref(phases);
	}
	js_set_int(o, "launches", count);
	js_set_real(o, "hours_total", sum);
	js_set_real(o, "gpu_hours_total", sum * (double)gpus);
	json_object_set_new(o, "hours", hours);
	return o;
}

/* Of all runs, each the less the longer ago it was. */
static json_t *view_rate(const struct troubles *seen)
{
	json_t *o = json_object();

	js_set_real(o, "count", seen->count);
	js_set_real(o, "node_days", seen->node_days);
	return o;
}

json_t *goodput_answer(struct request *r, struct err *err)
{
	struct lbd *lbd = r->lbd;
	int64_t now_ms = clock_wall_ms(), since_ms, until_ms, gpus;
	int64_t since_s = js_int(r->args, "since", 0);
	struct goodput_history *h = NULL;
	struct ledger_run run = { 0 };
	struct goodput g;
	json_t *o;

	if (request_run(r, &run, err) < 0)
		return NULL;
	gpus = goodput_gpus(lbd, run.dir, err);
	if (gpus >= 0)
		h = goodput_history_read(lbd->ledger, &run, err);
	if (!h)
		return NULL;
	since_ms = since_s ? goodput_moment(now_ms, since_s) : 0;
	until_ms = goodput_moment(now_ms, js_int(r->args, "until", 0));
	goodput_history_count(h, since_ms, until_ms, &g);
	o = view(&g, gpus);
	json_object_set_new(o, "starts", view_starts(h, since_ms, until_ms, gpus));
	json_object_set_new(o, "ledger_troubles", view_rate(rate_of_troubles(lbd, 0)));
	goodput_history_free(h);
	return o;
}
