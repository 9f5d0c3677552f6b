/* SPDX-License-Identifier: MIT */
/* handlers.c - the table of verbs, and the handlers that are too small for a room. */
#include "daemon/recover/backup.h"
#include "daemon/handlers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/array_tasks.h"
#include "common/run/attempt_logs.h"
#include "common/base/clock.h"
#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "daemon/notify/alerts.h"
#include "daemon/control/control.h"
#include "daemon/cron/cron.h"
#include "daemon/runs/compare.h"
#include "daemon/runs/goodput_view.h"
#include "daemon/runs/nodes.h"
#include "daemon/runs/orders.h"
#include "daemon/runs/remover.h"
#include "daemon/runs/restart.h"
#include "daemon/runs/submit.h"
#include "daemon/runs/top.h"
#include "daemon/runs/views.h"
#include "daemon/runs/why.h"
#include "daemon/runs/requests.h"

enum {
	RECENT_MS = 7 * 24 * 3600 * 1000, /* ls without --all: what ended within a week */
	MAX_STEPS_IN_ANSWER = 10000,
	MAX_EVENTS_IN_ANSWER = 10000,
};

static void on_submit(struct request *request)
{
	struct submit submit = {
		.lbd = request->lbd,
		.args = request->args,
		.user = request->peer.user,
		.uid = request->peer.uid,
		.wants_job = true,
		.done = request_end,
		.arg = request,
	};

	submit_run(&submit);
}

static json_t *on_version(struct request *r, struct err *err)
{
	struct engine_health health;
	json_t *o = json_object();

	(void)err;
	engine_health(r->lbd->engine, &health);
	js_set_str(o, "version", LB_VERSION);
	js_set_str(o, "home", r->lbd->config.home);
	json_object_set_new(o, "runs_folder", js_bytes(r->lbd->config.runs_folder));
	js_set_int(o, "pid", getpid());
	js_set_time(o, "started", r->lbd->started_ms);
	js_set_int(o, "live_runs", health.live_runs);
	js_set_bool(o, "slurm", r->lbd->slurm != NULL);
	if (r->lbd->slurm_helper)
		js_set_str(o, "slurm_helper", r->lbd->slurm_helper);
	js_set_str(o, "slurm_note", r->lbd->slurm_note);
	js_set_time(o, "slurm_down_since", health.slurm_down_since_ms);
	js_set_str(o, "slurm_text", health.slurm_text);
	js_set_time(o, "ledger_down_since", health.ledger_down_since_ms);
	js_set_str(o, "ledger_text", health.ledger_text);
	js_set_time(o, "slurm_seen",
		    r->lbd->slurm && health.good_poll_ms > 0
			    ? clock_wall_ms() - (clock_mono_ms() - health.good_poll_ms)
			    : 0);
	js_set_real(o, "calls_per_minute", health.calls_per_minute);
	js_set_time(o, "ledger_checked", backup_checked_ms(r->lbd->backup));
	js_set_str(o, "ledger_damage", backup_damage(r->lbd->backup));
	return o;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct listing {
	struct ledger *ledger;
	struct engine *engine;
	json_t *list;
	const char *group; /* NULL: of all */
	json_t *periodic;  /* run: entry of the crontab */
	bool with_periodic;
	struct err *err;
};

static int list_run(const struct ledger_run *run, void *arg)
{
	struct listing *l = arg;
	const char *entry = js_str(l->periodic, run->name, NULL);
	json_t *o;

	if ((l->group && strcmp(l->group, run->run_group) != 0) || (entry && !l->with_periodic))
		return 0;
	o = view_run(l->ledger, run, false, l->err);
	if (o == NULL)
		return -1;
	js_set_str(o, "cron", entry);
	/* its own words are gone with the queries made since */
	if (strcmp(js_str(o, "state", ""), run_state_name(RUN_CREATED)) == 0) {
		const char *waits_for = engine_waits_for(l->engine, js_str(o, "name", ""));

		js_set_str(o, "waits_for", waits_for[0] ? waits_for : NULL);
	}
	json_array_append_new(l->list, o);
	return 0;
}

static int note_tick(const struct ledger_cron_tick *tick, void *arg)
{
	js_set_str(arg, tick->run, tick->entry);
	return 0;
}

static json_t *on_ls(struct request *r, struct err *err)
{
	struct listing l = {
		.ledger = r->lbd->ledger,
		.engine = r->lbd->engine,
		.list = json_array(),
		.periodic = json_object(),
		.with_periodic = js_bool(r->args, "cron", true),
		.err = err,
		.group = js_str(r->args, "group", NULL),
	};
	int64_t since_ms = js_bool(r->args, "all", false) ? 0 : clock_wall_ms() - RECENT_MS;
	int rc = ledger_cron_tick_runs(r->lbd->ledger, note_tick, l.periodic, err);

	if (rc == 0)
		rc = ledger_run_each_since(r->lbd->ledger, since_ms, list_run, &l, err);
	json_decref(l.periodic);
	if (rc == 0)
		return l.list;
	json_decref(l.list);
	return NULL;
}

static json_t *on_status(struct request *r, struct err *err)
{
	struct ledger_run run = { 0 };
	const char *waits_for;
	json_t *o;

	if (request_run(r, &run, err) < 0 ||
	    (o = view_run(r->lbd->ledger, &run, true, err)) == NULL)
		return NULL;
	/* it asks the ledger: the row's own strings are gone then */
	waits_for = engine_waits_for(r->lbd->engine, js_str(o, "name", ""));
	js_set_str(o, "waits_for", waits_for[0] ? waits_for : NULL);
	why_add_text(o, waits_for);
	array_tasks_tell(o);
	return o;
}

static int list_metric(const struct ledger_metric *m, void *arg)
{
	json_array_append_new(arg, view_metric(m));
	return 0;
}

static json_t *on_progress(struct request *r, struct err *err)
{
	struct ledger *ledger = r->lbd->ledger;
	int64_t cursor = js_int(r->args, "after", 0), limit = js_int(r->args, "limit", 1000);
	json_t *steps = json_array(), *object = NULL;
	struct ledger_run run = { 0 };
	int64_t id = 0;
	int rc;

	if (limit < 1 || limit > MAX_STEPS_IN_ANSWER)
		limit = MAX_STEPS_IN_ANSWER;
	rc = request_run(r, &run, err);
	if (rc == 0) {
		id = run.id;
		object = view_run(ledger, &run, false, err);
		rc = object ? 0 : -1;
	}
	if (rc == 0)
		rc = cursor < 0 ? ledger_metric_last(ledger, id, &cursor, err)
				: ledger_metric_each(ledger, id, cursor, limit, list_metric, steps,
						     err);
	if (rc < 0) {
		json_decref(object);
		json_decref(steps);
		return NULL;
	}
	if (json_array_size(steps) > 0)
		cursor = js_int(json_array_get(steps, json_array_size(steps) - 1), "id", cursor);
	return json_pack("{s:o, s:o, s:I}", "run", object, "steps", steps, "cursor",
			 (json_int_t)cursor);
}

static int list_event(const struct ledger_event *e, void *arg)
{
	json_array_append_new(arg, view_event(e));
	return 0;
}

static json_t *on_events(struct request *r, struct err *err)
{
	struct ledger_run run = { 0 };
	json_t *list;

	if (js_str(r->args, "run", NULL) && request_run(r, &run, err) < 0)
		return NULL;
	list = json_array();
	if (ledger_event_each(r->lbd->ledger, run.id, js_int(r->args, "after", 0),
			      MAX_EVENTS_IN_ANSWER, list_event, list, err) == 0)
		return list;
	json_decref(list);
	return NULL;
}

struct log_list {
	json_t *list;
	const char *dir;
	int64_t only; /* attempt number; 0 = all */
};

static int list_log(const struct ledger_attempt *a, void *arg)
{
	struct log_list *l = arg;
	char *folder;

	if (l->only != 0 && a->number != l->only)
		return 0;
	folder = path_join("%s/attempts/%lld", l->dir, (long long)a->number);
	attempt_logs(folder, a->number, l->list);
	free(folder);
	return 0;
}

static json_t *on_logs(struct request *r, struct err *err)
{
	struct log_list l = { .only = js_int(r->args, "attempt", 0) };
	struct ledger_run run = { 0 };
	char *dir;
	int rc;

	if (request_run(r, &run, err) < 0)
		return NULL;
	dir = path_join("%s", run.dir);
	l.dir = dir;
	l.list = json_array();
	rc = ledger_attempt_each(r->lbd->ledger, run.id, list_log, &l, err);
	free(dir);
	if (rc == 0 && (json_array_size(l.list) > 0 || l.only == 0))
		return l.list;
	if (rc == 0)
		err_set(err, ERR_NOT_FOUND, "there is no attempt %lld", (long long)l.only);
	json_decref(l.list);
	return NULL;
}

static json_t *on_poke(struct request *r, struct err *err)
{
	(void)err;
	engine_poke(r->lbd->engine, js_str(r->args, "run", ""));
	return json_null();
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
	json_t *(*now)(struct request *r, struct err *err); /* the data, or NULL with err */
	void (*later)(struct request *r);                   /* answers by itself */
} handlers[VERB_COUNT] = {
	[VERB_VERSION] = { .now = on_version },
	[VERB_SUBMIT] = { .later = on_submit },
	[VERB_LS] = { .now = on_ls },
	[VERB_TOP] = { .now = top_answer },
	[VERB_STATUS] = { .now = on_status },
	[VERB_WHY] = { .later = why_run },
	[VERB_PROGRESS] = { .now = on_progress },
	[VERB_EVENTS] = { .now = on_events },
	[VERB_LOGS] = { .now = on_logs },
	[VERB_KILL] = { .now = order_give },
	[VERB_STOP] = { .now = order_give },
	[VERB_HOLD] = { .now = order_give },
	[VERB_RELEASE] = { .now = order_give },
	[VERB_RESTART] = { .later = restart_run },
	[VERB_RM] = { .now = remover_answer },
	[VERB_NODES] = { .now = nodes_list },
	[VERB_FORGIVE] = { .now = nodes_forgive },
	[VERB_SAVE] = { .now = requests_ask },
	[VERB_STACKS] = { .now = requests_ask },
	[VERB_COMPARE] = { .now = compare_answer },
	[VERB_GOODPUT] = { .now = goodput_answer },
	[VERB_CRON] = { .now = cron_ls },
	[VERB_CRON_RUN] = { .later = cron_run_now },
	[VERB_CRON_SET] = { .now = cron_set_enabled },
	[VERB_NOTIFY_TEST] = { .now = alerts_test },
	[VERB_POKE] = { .now = on_poke },
};

void handle(struct request *request)
{
	struct err err = { 0 };
	json_t *data;

	if (handlers[request->verb].later) {
		handlers[request->verb].later(request);
		return;
	}
	data = handlers[request->verb].now(request, &err);
	if (data)
		request_answer(request, data);
	else
		request_refuse(request, &err);
}
