/* SPDX-License-Identifier: MIT */
/* views.c - one function a kind of row, its members by name. */
#include "daemon/runs/views.h"

#include <stdlib.h>
#include <string.h>

#include "common/run/hosts.h"
#include "common/base/json.h"
#include "common/base/mem.h"

static void set_cause(json_t *object, enum cause cause)
{
	js_set_str(object, "cause", cause == CAUSE_NONE ? NULL : cause_name(cause));
}

static void set_known(json_t *object, const char *key, int64_t value, int64_t unknown)
{
	json_object_set_new(object, key, value == unknown ? json_null() : json_integer(value));
}

static int add_launch(const struct ledger_launch *l, void *arg)
{
	json_t *o = json_object(), *start = NULL;

	if (l->start[0])
		start = js_parse(l->start, strlen(l->start), NULL);

	js_set_int(o, "number", l->number);
	set_cause(o, l->cause);
	js_set_str(o, "text", l->text);
	set_known(o, "pid", l->pid, 0);
	set_known(o, "exit_code", l->exit_code, -1);
	set_known(o, "signal", l->signal, 0);
	js_set_time(o, "start_time", l->started_ms);
	js_set_time(o, "end_time", l->ended_ms);
	set_known(o, "resumed_from_step", l->resumed_from_step, -1);
	set_known(o, "first_step", l->first_step, -1);
	set_known(o, "last_step", l->last_step, -1);
	json_object_set_new(o, "start", start ? start : json_null());
	json_array_append_new(arg, o);
	return 0;
}

static json_t *view_attempt(const struct ledger_attempt *a)
{
	json_t *o = json_object();

	js_set_int(o, "number", a->number);
	js_set_str(o, "token", a->token);
	set_known(o, "job_id", a->job_id, 0);
	set_known(o, "submit_time", a->submit_time, 0);
	js_set_str(o, "state", attempt_state_name(a->state));
	set_cause(o, a->cause);
	js_set_str(o, "text", a->text);
	set_known(o, "exit_code", a->exit_code, -1);
	set_known(o, "signal", a->signal, 0);
	json_object_set_new(o, "nodes", hosts_expand(a->nodes));
	js_set_time(o, "start_time", a->started_ms);
	js_set_time(o, "end_time", a->ended_ms);
	set_known(o, "resumed_from_step", a->resumed_from_step, -1);
	return o;
}

struct attempts_view {
	json_t *list;
	int64_t *ids; /* of list[i]; launches are read when no statement is under way */
	size_t count;
};

static int add_attempt(const struct ledger_attempt *a, void *arg)
{
	struct attempts_view *v = arg;

	if ((v->count & (v->count - 1)) == 0)
		v->ids = xrealloc(v->ids, (v->count ? 2 * v->count : 1) * sizeof(*v->ids));
	v->ids[v->count++] = a->id;
	json_array_append_new(v->list, view_attempt(a));
	return 0;
}

static int add_attempts(struct ledger *ledger, int64_t run_id, json_t *object, struct err *err)
{
	struct attempts_view v = { .list = json_array() };
	int rc;

	json_object_set_new(object, "attempts", v.list);
	rc = ledger_attempt_each(ledger, run_id, add_attempt, &v, err);
	for (size_t i = 0; rc == 0 && i < v.count; i++) {
		json_t *launches = json_array();

		json_object_set_new(json_array_get(v.list, i), "launches", launches);
		rc = ledger_launch_each(ledger, v.ids[i], add_launch, launches, err);
	}
	free(v.ids);
	return rc;
}

static json_t *view_checkpoint(struct ledger *ledger, int64_t run_id)
{
	struct ledger_checkpoint c;
	struct err err = { 0 };
	json_t *o;

	if (ledger_checkpoint_newest(ledger, run_id, &c, &err) < 0)
		return json_null();
	o = json_object();
	js_set_int(o, "step", c.step);
	js_set_str(o, "path", c.path);
	js_set_bool(o, "valid", c.valid);
	js_set_time(o, "time", c.time_ms);
	return o;
}

json_t *view_run(struct ledger *ledger, const struct ledger_run *run, bool with_attempts,
		 struct err *err)
{
	int64_t id = run->id; /* the row's strings are gone after the next query: copy first */
	json_t *o = json_object();

	js_set_str(o, "name", run->name);
	js_set_str(o, "state", run_state_name(run->state));
	js_set_str(o, "owner", run->owner);
	js_set_str(o, "group", run->run_group[0] ? run->run_group : NULL);
	set_cause(o, run->cause);
	js_set_str(o, "text", run->text);
	js_set_str(o, "scheduler", run->scheduler);
	js_set_str(o, "dir", run->dir);
	js_set_time(o, "created", run->created_ms);
	js_set_time(o, "ended", run->ended_ms);
	js_set_time(o, "next_attempt", run->state == RUN_BACKOFF ? run->backoff_until_ms : 0);
	js_set_str(o, "wanted", run_order_name(run->wanted));
	set_known(o, "step", run->step, -1);
	set_known(o, "target_step", run->target_step, -1);
	js_set_real(o, "loss", run->loss);
	js_set_real(o, "tokens_per_s", run->tokens_per_s);
	js_set_real(o, "mfu", run->mfu);
	json_object_set_new(o, "checkpoint", view_checkpoint(ledger, id));
	if (with_attempts && add_attempts(ledger, id, o, err) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *view_metric(const struct ledger_metric *m)
{
	json_t *o = js_parse(m->fields, strlen(m->fields), NULL);

	if (o == NULL)
		o = json_object();
	json_object_del(o, "type");
	js_set_int(o, "id", m->id);
	js_set_int(o, "launch", m->launch);
	js_set_int(o, "step", m->step);
	js_set_real(o, "loss", m->loss);
	js_set_time(o, "time", m->time_ms);
	return o;
}

json_t *view_event(const struct ledger_event *e)
{
	json_t *o = json_object();

	js_set_int(o, "id", e->id);
	js_set_time(o, "time", e->time_ms);
	js_set_str(o, "kind", e->kind);
	js_set_str(o, "actor", e->actor);
	js_set_str(o, "text", e->text);
	js_set_str(o, "run", e->run[0] ? e->run : NULL);
	set_known(o, "attempt", e->attempt, 0);
	return o;
}
