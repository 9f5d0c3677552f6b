/* SPDX-License-Identifier: MIT */
/* cron_ticks.c - from a tick to a run. */
#include "common/base/accounts.h"
#include "daemon/cron/cron_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/config/kept_env.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "daemon/calendar/cron_check.h"
#include "daemon/runs/orders.h"
#include "daemon/runs/submit.h"

enum { MAX_SPEC_BYTES = 1024 * 1024 };

void cron_event(struct cron *cron, const char *kind, const char *entry, const char *text)
{
	char *line = xasprintf("%s: %s", entry, text);
	struct ledger_event e = {
		.time_ms = clock_wall_ms(),
		.kind = kind,
		.actor = "lbd",
		.text = line,
	};

	log_info("cron: %s: %s", kind, line);
	ledger_event_put(cron->lbd->ledger, &e, NULL);
	free(line);
}

/* --- the run before -------------------------------------------------------------------------- */

bool cron_last_is_over(struct cron *cron, const char *entry, struct ledger_run *run)
{
	struct ledger_cron_tick tick;
	char name[NAME_MAX_BYTES + 1];

	if (ledger_cron_tick_newest(cron->lbd->ledger, entry, "submitted", &tick, NULL) < 0)
		return true;
	snprintf(name, sizeof(name), "%s", tick.run);
	return ledger_run_find(cron->lbd->ledger, name, run, NULL) < 0 ||
	       run_state_is_final(run->state);
}

static int settle(struct cron *cron, const char *entry, int64_t scheduled_s, const char *state,
		  const char *text)
{
	struct ledger_cron_tick tick = {
		.entry = entry,
		.scheduled_s = scheduled_s,
		.state = state,
		.run = "",
		.text = text,
		.time_ms = clock_wall_ms(),
	};

	return ledger_cron_tick_put(cron->lbd->ledger, &tick, NULL);
}

static void end_run(struct cron *cron, const struct ledger_run *run, const char *reason)
{
	struct lbd *lbd = cron->lbd;
	char *name = xstrdup(run->name); /* the row is the ledger's */

	if (run->wanted < ORDER_KILL &&
	    order_write(lbd, run->id, ORDER_KILL, "kill", "cron", reason, NULL) == 0)
		engine_order(lbd->engine, name, ORDER_KILL, "cron", reason);
	free(name);
}

/* --- submitting ------------------------------------------------------------------------------ */

/* One tick on its way to becoming a run. */
struct submission {
	struct cron *cron;
	char entry[NAME_MAX_BYTES + 1];
	char run[NAME_MAX_BYTES + 1];
	char user[64];
	int64_t scheduled_s;
	json_t *args;
	void (*done)(void *arg, json_t *answer, const struct err *why); /* NULL: nobody waits */
	void *arg;
};

static int put_tick(void *arg, int64_t run_id, struct err *err)
{
	const struct submission *f = arg;
	struct ledger_cron_tick tick = {
		.entry = f->entry,
		.scheduled_s = f->scheduled_s,
		.state = "submitted",
		.run = f->run,
		.text = "",
		.time_ms = clock_wall_ms(),
	};

	(void)run_id;
	return ledger_cron_tick_put(f->cron->lbd->ledger, &tick, err);
}

static void on_submitted(void *arg, json_t *answer, const struct err *why)
{
	struct submission *f = arg;
	struct cron_state *state = cron_state_of(f->cron, f->entry);

	state->busy = false;
	if (why && f->done == NULL && why->code != ERR_DAEMON) { /* else the next lbd submits it */
		settle(f->cron, f->entry, f->scheduled_s, "refused", why->text);
		cron_event(f->cron, "cron_refused", f->entry, why->text);
		ledger_commit(f->cron->lbd->ledger, NULL);
	}
	if (f->done)
		f->done(f->arg, answer, why);
	else
		json_decref(answer);
	json_decref(f->args);
	free(f);
}

/* "backup-20261121T0430Z" */
static void name_run(const char *entry, int64_t scheduled_s, char out[NAME_MAX_BYTES + 1])
{
	time_t t = (time_t)scheduled_s;
	char when[24];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), scheduled_s % 60 ? "%Y%m%dT%H%M%SZ" : "%Y%m%dT%H%MZ", &tm);
	snprintf(out, NAME_MAX_BYTES + 1, "%.*s-%s", (int)(NAME_MAX_BYTES - 1 - strlen(when)),
		 entry, when);
}

static json_t *strings(char *const *items)
{
	json_t *list = json_array();

	for (; *items; items++)
		json_array_append_new(list, json_string(*items));
	return list;
}

/* What lies in the folder of periodic jobs acts as its owner, now as when it was loaded; what a
 * crontab names elsewhere is as the shell would find it. */
static char *read_script(const struct cron *cron, const char *path, struct err *err)
{
	if (path_below(path, cron->folder))
		return cron_read(path, MAX_SPEC_BYTES, err);
	return file_read(path, MAX_SPEC_BYTES, NULL, err);
}

/* Its #SBATCH lines count, as for lbctl submit SCRIPT. */
static bool add_batch(json_t *args, const char *path, const char *text, char *const *argv)
{
	bool is = text && cron_is_batch(path, text);

	if (is) {
		json_object_set_new(args, "script", js_bytes(text));
		json_object_set_new(args, "script_path", js_bytes(path));
		json_object_set_new(args, "arguments", strings(argv + 1));
	}
	return is;
}

static void add_env(json_t *env, char *const *list)
{
	for (; list && *list; list++) {
		size_t len = strcspn(*list, "=");
		char *name = xstrndup(*list, len);

		json_object_set_new(env, name, js_bytes(*list + len + 1));
		free(name);
	}
}

/* What lbd was started with, as far as lbctl submit would take it along; then cron/environment;
 * then the lines above the entry. */
static json_t *environment(const struct cron *cron, const struct cron_entry *entry)
{
	json_t *env = kept_environment();

	add_env(env, cron->entries.env);
	add_env(env, entry->env);
	json_object_set_new(env, "LB_CRON", json_string(entry->name));
	return env;
}

/* What lbctl submit would send. A job that fails, or runs into its time limit without a checkpoint,
 * is not tried again: its next time comes. */
static json_t *arguments(const struct cron *cron, const struct cron_entry *entry, const char *name,
			 struct err *err)
{
	char *path = cron_entry_path(cron->folder, entry), *text;
	struct err why = { 0 };
	json_t *args = json_pack("{s:s, s:s, s:[ss]}", "name", name, "workdir", cron->folder, "set",
				 "restart.max_without_progress=1", "restart.policy.timeout=count");

	js_set_str(args, "file", path);
	json_object_set_new(args, "env", environment(cron, entry));
	if (entry->options)
		json_object_set_new(args, "options", strings(entry->options));
	text = read_script(cron, path, &why);
	if (text == NULL && (text_ends_with(path, ".toml") || why.code == ERR_REFUSED)) {
		err_set(err, why.code, "%s", why.text);
		json_decref(args);
		args = NULL;
	} else if (text_ends_with(path, ".toml")) {
		js_set_str(args, "toml", text);
	} else if (!add_batch(args, path, text, entry->argv)) {
		json_t *command = strings(entry->argv);

		json_array_set_new(command, 0, json_string(path));
		json_object_set_new(args, "command", command);
	}
	free(text);
	free(path);
	return args;
}

/* Long names of two entries may be cut to the same one. */
static bool is_submitting(const struct cron *cron, const char *run)
{
	for (size_t i = 0; i < cron->state_count; i++)
		if (cron->states[i]->busy && strcmp(cron->states[i]->run, run) == 0)
			return true;
	return false;
}

/* What an lbd left that died over this very submission. */
static void remove_rest(const struct cron *cron, const char *run)
{
	char *dir = path_join("%s/%s", cron->lbd->config.runs_folder, run);

	if (!is_submitting(cron, run) && submit_left_folder(cron->lbd, run))
		folder_remove(dir, NULL);
	free(dir);
}

void cron_submit(struct cron *cron, const struct cron_entry *entry, int64_t scheduled_s,
		 void (*done)(void *arg, json_t *answer, const struct err *why), void *arg)
{
	struct account me;
	struct cron_state *state = cron_state_of(cron, entry->name);
	struct submission *f = xcalloc(1, sizeof(*f));
	struct submit submit = { .lbd = cron->lbd, .uid = geteuid(), .arg = f };
	struct err err = { 0 };

	f->cron = cron;
	f->scheduled_s = scheduled_s;
	f->done = done;
	f->arg = arg;
	snprintf(f->entry, sizeof(f->entry), "%s", entry->name);
	snprintf(f->user, sizeof(f->user), "%s", account_of(geteuid(), &me) ? me.name : "?");
	account_clear(&me);
	name_run(entry->name, scheduled_s, f->run);
	remove_rest(cron, f->run);
	if (entry->problem)
		err_set(&err, ERR_USAGE, "%s", entry->problem);
	else
		f->args = arguments(cron, entry, f->run, &err);
	state->busy = true;
	snprintf(state->run, sizeof(state->run), "%s", f->run);
	if (f->args == NULL) {
		on_submitted(f, NULL, &err);
		return;
	}
	submit.args = f->args;
	submit.user = f->user;
	submit.also = put_tick;
	submit.done = on_submitted;
	submit_run(&submit);
}

/* --- what to do with a tick ------------------------------------------------------------------ */

/* It waits in the ledger until its run is there: an lbd that dies meanwhile leaves it to the next
 * one. */
void cron_tick(struct cron *cron, const struct cron_entry *entry, int64_t scheduled_s,
	       bool one_of_many)
{
	struct ledger_run before = { 0 };
	struct ledger_cron_tick first;
	bool is_free = !cron_state_of(cron, entry->name)->busy &&
		       cron_last_is_over(cron, entry->name, &before);
	bool is_skipped = !is_free && !one_of_many && entry->settings.overlap == OVERLAP_SKIP;

	is_free &= ledger_cron_tick_waiting(cron->lbd->ledger, entry->name, &first, NULL) < 0;
	settle(cron, entry->name, scheduled_s, is_skipped ? "skipped" : "waiting",
	       is_free ? "" : "the one before it still runs");
}

/* It waited for nothing, but the lbd that was about to submit it died, long ago, or its disk was
 * full: a time that was missed like others. */
static bool is_left_over(const struct ledger_cron_tick *tick)
{
	return tick->text[0] == '\0' && clock_wall_ms() - tick->time_ms > CRON_LATE_S * 1000;
}

/* Why the oldest one that waits is not submitted; NULL: it is. */
static const char *passed_by(const struct cron_entry *entry, bool is_disabled, bool is_left_over,
			     bool has_newer)
{
	enum cron_catch_up catch_up = (enum cron_catch_up)entry->settings.catch_up;

	if (is_disabled)
		return "it is disabled";
	if (has_newer && entry->settings.overlap == OVERLAP_REPLACE)
		return "a newer one took its place";
	if (is_left_over && (catch_up == CATCH_UP_NONE || (has_newer && catch_up == CATCH_UP_ONE)))
		return "it was not submitted in time, and CATCH_UP says not to make up for that";
	return NULL;
}

static void submit_waiting(struct cron *cron, const struct cron_entry *entry, bool is_disabled)
{
	struct ledger *ledger = cron->lbd->ledger;
	struct ledger_cron_tick tick;
	char run[NAME_MAX_BYTES + 1];

	while (ledger_cron_tick_waiting(ledger, entry->name, &tick, NULL) == 0) {
		int64_t scheduled_s = tick.scheduled_s;
		bool is_old = is_left_over(&tick);
		bool has_newer = ledger_cron_tick_newest(ledger, entry->name, "waiting", &tick,
							 NULL) == 0 &&
				 tick.scheduled_s > scheduled_s;
		const char *why = passed_by(entry, is_disabled, is_old, has_newer);

		if (!why) {
			cron_submit(cron, entry, scheduled_s, NULL, NULL);
			return;
		}
		if (settle(cron, entry->name, scheduled_s, "skipped", why) < 0)
			return; /* a full disk: it waits until there is room */
		name_run(entry->name, scheduled_s, run);
		remove_rest(cron, run);
	}
}

/* Whatever the wall clock was set to since it was first seen. Not by its id, which the next run may
 * get once it is removed. */
static int64_t age_ms(struct cron_state *state, const struct ledger_run *run)
{
	int64_t now_ms = clock_mono_ms(), seen_ms = clock_wall_ms() - run->created_ms;

	if (state->created_ms != run->created_ms) {
		state->created_ms = run->created_ms;
		state->begun_ms = now_ms - (seen_ms > 0 ? seen_ms : 0);
	}
	return now_ms - state->begun_ms;
}

void cron_look_after(struct cron *cron, const struct cron_entry *entry)
{
	struct cron_state *state = cron_state_of(cron, entry->name);
	int64_t timeout_ms = entry->settings.timeout_ms;
	struct ledger_cron_tick tick;
	struct ledger_run run = { 0 };
	bool is_disabled = state->disabled_by[0] != '\0';
	/* asked before: the words of the run are gone with the next call on the ledger */
	bool is_replaced = !is_disabled && entry->settings.overlap == OVERLAP_REPLACE &&
			   ledger_cron_tick_waiting(cron->lbd->ledger, entry->name, &tick, NULL) ==
				   0;

	if (state->busy)
		return;
	if (cron_last_is_over(cron, entry->name, &run))
		submit_waiting(cron, entry, is_disabled);
	else if (timeout_ms > 0 && age_ms(state, &run) > timeout_ms)
		end_run(cron, &run, "it ran longer than its TIMEOUT");
	else if (is_replaced)
		end_run(cron, &run, "its next time has come (OVERLAP=replace)");
}
