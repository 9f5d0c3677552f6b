/* SPDX-License-Identifier: MIT */
/* record.c - runs/NAME/record.json, written after commits and read when the ledger is lost. */
#include "daemon/recover/record.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { RECORD_VERSION = 1, RECORD_MAX_BYTES = 64 * 1024 * 1024 };

/* --- writing ---------------------------------------------------------------------------------- */

static json_t *run_object(const struct ledger_run *r)
{
	json_t *o = json_object();

	js_set_int(o, "version", RECORD_VERSION);
	js_set_str(o, "owner", r->owner);
	js_set_int(o, "owner_uid", r->owner_uid);
	js_set_str(o, "state", run_state_name(r->state));
	js_set_str(o, "cause", cause_name(r->cause));
	js_set_str(o, "text", r->text);
	js_set_str(o, "scheduler", r->scheduler);
	js_set_str(o, "group", r->run_group);
	js_set_str(o, "wanted", run_order_name(r->wanted));
	js_set_str(o, "wanted_by", r->wanted_by);
	js_set_str(o, "wanted_reason", r->wanted_reason);
	js_set_str(o, "wanted_switch", r->wanted_switch);
	js_set_int(o, "wanted_ms", r->wanted_ms);
	js_set_int(o, "created_ms", r->created_ms);
	js_set_int(o, "ended_ms", r->ended_ms);
	js_set_int(o, "backoff_until_ms", r->backoff_until_ms);
	js_set_int(o, "failures", r->failures);
	js_set_str(o, "resume_from", r->resume_from);
	return o;
}

static int add_attempt(const struct ledger_attempt *a, void *arg)
{
	json_t *o = json_object();

	js_set_int(o, "number", a->number);
	js_set_str(o, "token", a->token);
	js_set_str(o, "state", attempt_state_name(a->state));
	js_set_int(o, "job_id", a->job_id);
	js_set_int(o, "submit_time", a->submit_time);
	js_set_str(o, "cause", cause_name(a->cause));
	js_set_int(o, "exit_code", a->exit_code);
	js_set_int(o, "signal", a->signal);
	js_set_str(o, "text", a->text);
	js_set_str(o, "nodes", a->nodes);
	js_set_int(o, "created_ms", a->created_ms);
	js_set_int(o, "released_ms", a->released_ms);
	js_set_int(o, "started_ms", a->started_ms);
	js_set_int(o, "ended_ms", a->ended_ms);
	js_set_str(o, "excluded", a->excluded);
	js_set_bool(o, "is_walled_in", a->is_walled_in);
	js_set_bool(o, "is_short", a->is_short);
	js_set_bool(o, "was_waiting", a->was_waiting);
	json_array_append_new(arg, o);
	return 0;
}

/* Not synced: it is written often, and is needed only where the ledger, which is, was lost. */
static void write_record(struct ledger *ledger, int64_t run_id)
{
	json_t *attempts = json_array(), *o = NULL;
	char *path = NULL, *text = NULL, *dir = NULL;
	struct err err = { 0 };
	struct ledger_run run;

	if (ledger_run_by_id(ledger, run_id, &run, &err) == 0) {
		o = run_object(&run);
		dir = xstrdup(run.dir);
		path = path_join("%s/record.json", run.dir);
	}
	if (o && ledger_attempt_each(ledger, run_id, add_attempt, attempts, &err) == 0) {
		js_set_str(o, "ledger", ledger_id(ledger));
		json_object_set(o, "attempts", attempts);
		text = js_line(o);
	}
	/* a run that is being removed has no folder any more */
	if (text && file_exists(dir) &&
	    file_write_visible(path, text, strlen(text), 0640, &err) < 0)
		log_warn("%s: the run's record is not up to date", err.text);
	free(text);
	free(dir);
	free(path);
	json_decref(o);
	json_decref(attempts);
}

static void on_change(void *arg, int64_t run_id)
{
	write_record(arg, run_id);
}

struct ids {
	int64_t *items;
	size_t count;
};

static int add_id(const struct ledger_run *run, void *arg)
{
	struct ids *ids = arg;

	ids->items = xrealloc(ids->items, (ids->count + 1) * sizeof(ids->items[0]));
	ids->items[ids->count++] = run->id;
	return 0;
}

int record_keep(struct ledger *ledger, struct err *err)
{
	struct ids live = { 0 };
	int rc = ledger_run_each(ledger, true, add_id, &live, err);

	for (size_t i = 0; rc == 0 && i < live.count; i++)
		write_record(ledger, live.items[i]);
	free(live.items);
	ledger_on_change(ledger, on_change, ledger);
	return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

json_t *record_load(const char *run_dir)
{
	char *path = path_join("%s/record.json", run_dir);
	struct err err = { 0 };
	json_t *o = file_exists(path) ? js_load(path, RECORD_MAX_BYTES, &err) : NULL;

	if (o && (js_int(o, "version", 0) < 1 || js_int(o, "version", 0) > RECORD_VERSION)) {
		err_set(&err, ERR_USAGE, "%s: written by a newer lbd", path);
		json_decref(o);
		o = NULL;
	}
	if (err.code != ERR_NONE)
		log_warn("%s", err.text);
	free(path);
	return o;
}

void record_run(const json_t *o, struct ledger_run *out)
{
	out->owner = js_str(o, "owner", out->owner);
	out->owner_uid = js_int(o, "owner_uid", out->owner_uid);
	out->state = run_state_from_name(js_str(o, "state", ""));
	out->cause = cause_from_name(js_str(o, "cause", ""));
	out->text = js_str(o, "text", "");
	out->scheduler = js_str(o, "scheduler", out->scheduler);
	out->run_group = js_str(o, "group", "");
	out->wanted = run_order_from_name(js_str(o, "wanted", ""));
	out->wanted_by = js_str(o, "wanted_by", "");
	out->wanted_reason = js_str(o, "wanted_reason", "");
	out->wanted_switch = js_str(o, "wanted_switch", "");
	out->wanted_ms = js_int(o, "wanted_ms", 0);
	out->created_ms = js_int(o, "created_ms", out->created_ms);
	out->ended_ms = js_int(o, "ended_ms", 0);
	out->backoff_until_ms = js_int(o, "backoff_until_ms", 0);
	out->failures = js_int(o, "failures", 0);
	out->resume_from = js_str(o, "resume_from", "");
	if (out->cause == CAUSE_COUNT)
		out->cause = CAUSE_NONE;
	if (out->wanted == ORDER_COUNT)
		out->wanted = ORDER_RUN;
}

bool record_attempt(const json_t *record, int64_t number, struct ledger_attempt *out)
{
	const json_t *list = json_object_get(record, "attempts"), *o;
	size_t i;

	json_array_foreach(list, i, o) {
		if (js_int(o, "number", 0) != number)
			continue;
		*out = (struct ledger_attempt){
			.number = number,
			.token = js_str(o, "token", ""),
			.state = attempt_state_from_name(js_str(o, "state", "")),
			.job_id = js_int(o, "job_id", 0),
			.submit_time = js_int(o, "submit_time", 0),
			.cause = cause_from_name(js_str(o, "cause", "")),
			.exit_code = (int)js_int(o, "exit_code", -1),
			.signal = (int)js_int(o, "signal", 0),
			.text = js_str(o, "text", ""),
			.nodes = js_str(o, "nodes", ""),
			.created_ms = js_int(o, "created_ms", 0),
			.released_ms = js_int(o, "released_ms", 0),
			.started_ms = js_int(o, "started_ms", 0),
			.ended_ms = js_int(o, "ended_ms", 0),
			.excluded = js_str(o, "excluded", ""),
			.is_walled_in = js_bool(o, "is_walled_in", false),
			.is_short = js_bool(o, "is_short", false),
			.was_waiting = js_bool(o, "was_waiting", false),
		};
		return out->token[0] && out->state != ATTEMPT_STATE_COUNT &&
		       out->cause != CAUSE_COUNT;
	}
	return false;
}
