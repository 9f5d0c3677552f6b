/* SPDX-License-Identifier: MIT */
/* cron_view.c - what people see of periodic jobs, and what they can do. */
#include "daemon/cron/cron_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"

static json_t *view_tick(struct cron *cron, const struct ledger_cron_tick *tick)
{
	json_t *o = json_object();
	struct ledger_run run;
	char name[NAME_MAX_BYTES + 1] = "";

	memcpy(name, tick->run, strnlen(tick->run, NAME_MAX_BYTES));
	js_set_time(o, "scheduled", tick->scheduled_s * 1000);
	js_set_str(o, "state", tick->state);
	js_set_str(o, "text", tick->text);
	js_set_str(o, "run", name[0] ? name : NULL);
	if (name[0] && ledger_run_find(cron->lbd->ledger, name, &run, NULL) == 0) {
		js_set_str(o, "run_state", run_state_name(run.state));
		js_set_time(o, "start_time", run.created_ms);
		js_set_time(o, "end_time", run.ended_ms);
	}
	return o;
}

static json_t *view_entry(struct cron *cron, const struct cron_entry *entry, int64_t now_s)
{
	const struct cron_state *state = cron_state_of(cron, entry->name);
	bool is_enabled = state->disabled_by[0] == '\0';
	int64_t next_s = is_enabled ? cron_next_s(cron, entry, now_s) : -1;
	struct ledger_cron_tick tick;
	json_t *o = json_object(), *argv = json_array(), *options = json_array();

	for (char **word = entry->argv; *word; word++)
		json_array_append_new(argv, json_string(*word));
	for (char **word = entry->options; word && *word; word++)
		json_array_append_new(options, json_string(*word));
	js_set_str(o, "name", entry->name);
	js_set_str(o, "when", entry->when);
	js_set_str(o, "time_zone", entry->zone[0] ? entry->zone : NULL);
	js_set_str(o, "source", entry->source);
	json_object_set_new(o, "command", argv);
	json_object_set_new(o, "options", options);
	js_set_str(o, "problem", entry->problem);
	js_set_bool(o, "enabled", is_enabled);
	js_set_str(o, "disabled_by", is_enabled ? NULL : state->disabled_by);
	js_set_time(o, "next", next_s < 0 ? 0 : next_s * 1000);
	if (ledger_cron_tick_newest(cron->lbd->ledger, entry->name, "", &tick, NULL) == 0)
		json_object_set_new(o, "last", view_tick(cron, &tick));
	if (ledger_cron_tick_succeeded(cron->lbd->ledger, entry->name, &tick, NULL) == 0)
		js_set_time(o, "last_success", tick.scheduled_s * 1000);
	return o;
}

json_t *cron_ls(struct request *r, struct err *err)
{
	struct cron *cron = r->lbd->cron;
	json_t *entries = json_array();

	(void)err;
	cron_read_folder(cron);
	for (size_t i = 0; i < cron->entries.count; i++)
		json_array_append_new(entries, view_entry(cron, &cron->entries.items[i],
							  clock_wall_ms() / 1000));
	return json_pack("{s:s, s:o, s:O}", "folder", cron->folder, "entries", entries, "problems",
			 cron->problems);
}

static const struct cron_entry *find(struct request *r, struct err *err)
{
	const char *name = js_str(r->args, "name", "");
	const struct cron_entry *entry;

	cron_read_folder(r->lbd->cron);
	entry = cron_entries_find(&r->lbd->cron->entries, name);

	if (entry == NULL && name_check(name, err) == 0)
		err_set(err, ERR_NOT_FOUND,
			"%s: there is no such entry in %s; lbctl cron ls shows them", name,
			r->lbd->cron->folder);
	return entry;
}

/* args.enabled; whoever disabled it is remembered. */
json_t *cron_set_enabled(struct request *r, struct err *err)
{
	struct cron *cron = r->lbd->cron;
	const struct cron_entry *entry = find(r, err);
	bool enable = js_bool(r->args, "enabled", true);
	struct cron_state *state;
	char *was;
	struct ledger_event e = {
		.time_ms = clock_wall_ms(),
		.kind = enable ? "cron_enabled" : "cron_disabled",
		.actor = r->peer.user,
		.text = entry ? entry->name : "",
	};

	if (entry == NULL)
		return NULL;
	state = cron_state_of(cron, entry->name);
	was = state->disabled_by;
	state->disabled_by = xstrdup(enable ? "" : r->peer.user);
	if (cron_state_write(cron, state, err) < 0 ||
	    ledger_event_put(r->lbd->ledger, &e, err) < 0 ||
	    ledger_commit(r->lbd->ledger, err) < 0) {
		ledger_rollback(r->lbd->ledger);
		free(state->disabled_by);
		state->disabled_by = was;
		return NULL;
	}
	free(was);
	return view_entry(cron, entry, e.time_ms / 1000);
}

void cron_run_now(struct request *r)
{
	struct cron *cron = r->lbd->cron;
	struct err err = { 0 };
	const struct cron_entry *entry = find(r, &err);
	struct ledger_run before = { 0 };
	int64_t now_s = clock_wall_ms() / 1000;

	if (entry && (cron_state_of(cron, entry->name)->busy ||
		      !cron_last_is_over(cron, entry->name, &before))) {
		err_set(&err, ERR_LOCKED, "%s: the one before it still runs%s%s", entry->name,
			before.name ? ": " : "", before.name ? before.name : "");
		entry = NULL;
	}
	if (entry == NULL)
		request_refuse(r, &err);
	else /* a whole minute is the name of a tick */
		cron_submit(cron, entry, now_s + (now_s % 60 == 0), request_end, r);
}
