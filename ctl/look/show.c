/* SPDX-License-Identifier: MIT */
/* show.c - lbctl ls, events and version: tables of what lbd knows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"

static struct cell *put(struct cell *cell, const char *text, const struct style *style)
{
	cell->text = clean_copy(text, style);
	return cell;
}

/* --- ls -------------------------------------------------------------------------------------- */
enum { LS_NAME, LS_STATE, LS_STEP, LS_LOSS, LS_SPEED, LS_AGE, LS_CAUSE };
const struct column run_columns[RUN_COLUMNS] = {
	[LS_NAME] = { .title = "NAME", .least = 32, .rank = 0 }, /* people copy it */
	[LS_STATE] = { .title = "STATE", .rank = 1 },
	[LS_STEP] = { .title = "STEP", .right = true, .rank = 2 },
	[LS_LOSS] = { .title = "LOSS", .right = true, .rank = 3 },
	[LS_SPEED] = { .title = "TOK/S", .right = true, .rank = 6 },
	[LS_AGE] = { .title = "AGE", .right = true, .rank = 5 },
	[LS_CAUSE] = { .title = "CAUSE", .rank = 4 },
};

void fill_run(struct cell *row, const json_t *run, const struct style *style)
{
	int64_t created_ms = time_ms(run, "created");
	const char *state = js_str(run, "state", "?");
	char text[2 * NUMBER_TEXT_MAX], age[CLOCK_TEXT_MAX];

	put(&row[LS_NAME], js_str(run, "name", NULL), style);
	put(&row[LS_STATE], state, style)->color = state_color(state);
	put(&row[LS_STEP], step_text(js_int(run, "step", -1), js_int(run, "target_step", -1), text),
	    style);
	put(&row[LS_LOSS], loss_text(js_real(run, "loss", NAN), text), style);
	put(&row[LS_SPEED], short_number(js_real(run, "tokens_per_s", NAN), text), style);
	put(&row[LS_AGE], duration_text(created_ms ? clock_wall_ms() - created_ms : -1, age),
	    style);
	put(&row[LS_CAUSE], js_str(run, "cause", js_str(run, "waits_for", NULL)), style);
}

bool ls_names(const struct ctl *ctl, const json_t *run, const char *user)
{
	for (size_t i = 0; i < ctl->operands.count; i++) {
		char of[TEAM_USER_BYTES + 1];
		struct selector selector;

		if (team_word(ctl->operands.words[i], of, &selector, NULL) == 0 &&
		    (!of[0] || !user || strcmp(of, user) == 0) &&
		    selector_matches(&selector, js_str(run, "name", ""), js_str(run, "group", NULL),
				     js_str(run, "owner", "")))
			return true;
	}
	return ctl->operands.count == 0;
}

bool ls_is_of_some(const struct ctl *ctl)
{
	return ctl->options.group || ctl->operands.count > 0;
}

/* Runs of colleagues are told by the team's files only. */
static bool ls_names_others(struct ctl *ctl)
{
	for (size_t i = 0; i < ctl->operands.count; i++) {
		const char *word = ctl->operands.words[i];

		if (strchr(word, '/') && !team_is_mine(ctl, word))
			return true;
	}
	return false;
}

/* Takes `runs`. */
static json_t *ls_named(const struct ctl *ctl, json_t *runs)
{
	json_t *named = json_array(), *run;
	size_t i;

	json_array_foreach(runs, i, run) {
		if (ls_names(ctl, run, NULL))
			json_array_append(named, run);
	}
	json_decref(runs);
	return named;
}

static const char *ls_nothing(const struct ctl *ctl)
{
	const struct options *o = &ctl->options;

	if (ls_is_of_some(ctl) && o->all)
		return o->group ? "no runs of this group" : "no such runs";
	if (ls_is_of_some(ctl))
		return o->group ? "no runs of this group in the last 7 days; --all shows older ones"
				: "no such runs in the last 7 days; --all shows older ones";
	if (o->all)
		return "no runs yet; start one with: lbctl submit FILE.toml";
	return "no runs in the last 7 days; lbctl ls --all shows older ones, lbctl submit starts "
	       "one";
}

int ls_run(struct ctl *ctl, struct err *err)
{
	json_t *args, *runs;
	bool with_periodic;
	size_t count;

	if (ctl->options.team || ls_names_others(ctl))
		return team_ls(ctl, err);
	/* a table for people leaves the periodic ones out, programs see all */
	with_periodic = ctl->options.cron || ctl->options.json || ctl->operands.count > 0;
	args = json_pack("{s:b, s:b}", "all", ctl->options.all, "cron", with_periodic);
	if (ctl->options.group)
		json_object_set_new(args, "group", json_string(ctl->options.group));
	runs = client_ask(&ctl->client, VERB_LS, args, err);
	if (!runs)
		return -1;
	runs = ls_named(ctl, runs);
	count = json_array_size(runs);
	if (count > 0 && !ctl->options.json)
		print_rows(ctl, run_columns, RUN_COLUMNS, runs, fill_run);
	if (ctl->options.json)
		print_json(json_incref(runs));
	if (count == 0 && (ls_is_of_some(ctl) || !ctl->options.json))
		complain(ctl, ls_nothing(ctl));
	json_decref(runs);
	return count == 0 && ls_is_of_some(ctl) ? err_exit_status(ERR_NOT_FOUND) : 0;
}

/* --- events ---------------------------------------------------------------------------------- */
enum { EV_TIME, EV_RUN, EV_ACTOR, EV_KIND, EV_TEXT, EV_COUNT };
static const struct column events_columns[EV_COUNT] = {
	[EV_TIME] = { .title = "TIME", .rank = 0 },
	[EV_RUN] = { .title = "RUN", .least = 24, .rank = 1 },
	[EV_ACTOR] = { .title = "ACTOR", .rank = 3 },
	[EV_KIND] = { .title = "KIND", .rank = 2 },
	[EV_TEXT] = { .title = "WHAT HAPPENED", .runs_on = true, .rank = 0 },
};

/* `table` has no RUN column when all events are of one run: one column is then left out. */
static void events_row(struct table *table, const json_t *event, bool with_run,
		       const struct style *style)
{
	struct cell *cell = table_row(table);
	char time[CLOCK_TEXT_MAX];

	put(cell++, clock_text(time_ms(event, "time"), time), style);
	if (with_run)
		put(cell++, js_str(event, "run", NULL), style);
	put(cell++, js_str(event, "actor", NULL), style);
	put(cell++, js_str(event, "kind", NULL), style);
	put(cell, js_str(event, "text", NULL), style);
}

static void events_print(const struct ctl *ctl, const json_t *events, bool with_run)
{
	struct column columns[EV_COUNT];
	struct table table;
	json_t *event;
	size_t i;
	int count = 0;

	for (int c = 0; c < EV_COUNT; c++) {
		if (c != EV_RUN || with_run)
			columns[count++] = events_columns[c];
	}
	table_init(&table, columns, count);
	json_array_foreach(events, i, event) {
		events_row(&table, event, with_run, &ctl->out);
	}
	table_print(&table, &ctl->out, stdout);
	table_fini(&table);
}

/* lbd answers a long story in parts: asks on until nothing new comes. */
static json_t *events_all(struct ctl *ctl, const char *run, struct err *err)
{
	json_t *all = json_array();
	int64_t after = 0;

	for (;;) {
		json_t *args = json_pack("{s:I}", "after", (json_int_t)after);
		json_t *part = run ? ask_about(ctl, VERB_EVENTS, run, args, err)
				   : client_ask(&ctl->client, VERB_EVENTS, args, err);
		size_t count = json_array_size(part);
		int64_t last;

		if (!part) {
			json_decref(all);
			return NULL;
		}
		last = count ? js_int(json_array_get(part, count - 1), "id", 0) : 0;
		json_array_extend(all, part);
		json_decref(part);
		if (last <= after)
			return all;
		after = last;
	}
}

int events_run(struct ctl *ctl, struct err *err)
{
	const char *run = ctl->operands.count ? ctl->operands.words[0] : NULL;
	json_t *events = events_all(ctl, run, err);

	if (!events)
		return -1;
	if (ctl->options.json) {
		print_json(events);
		return 0;
	}
	if (json_array_size(events) > 0)
		events_print(ctl, events, !run);
	else
		complain(ctl, "nothing has happened yet");
	json_decref(events);
	return 0;
}

/* --- version --------------------------------------------------------------------------------- */
/* Which lbctl this is can be told without lbd; people ask when something does not work. */
int version_run(struct ctl *ctl, struct err *err)
{
	struct err why = { 0 };
	json_t *lbd = client_ask(&ctl->client, VERB_VERSION, NULL, &why);

	(void)err;
	if (ctl->options.json) {
		print_json(json_pack("{s:s, s:o}", "lbctl", LB_VERSION, "lbd",
				     lbd ? json_incref(lbd) : json_null()));
	} else {
		printf("lbctl %s\n", LB_VERSION);
		if (lbd) {
			char *version = clean_copy(js_str(lbd, "version", NULL), &ctl->out);
			char *home = clean_copy(js_str(lbd, "home", NULL), &ctl->out);

			printf("lbd   %s (process %lld, %s)\n", version,
			       (long long)js_int(lbd, "pid", 0), home);
			free(version);
			free(home);
		}
	}
	json_decref(lbd);
	if (why.code != ERR_NONE)
		complain(ctl, why.text);
	return 0;
}
