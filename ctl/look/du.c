/* SPDX-License-Identifier: MIT */
/* du.c - lbctl du: what each run takes on disk, of which kind, whose it is and how old, and what
 * could go. lbctl looks itself: lbd has better things to do than to walk through folders. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/run_row.h"
#include "ctl/look/run_space.h"
#include "ctl/team/team.h"

enum {
	DU_USER,
	DU_RUN,
	DU_STATE,
	DU_AGE,
	DU_KINDS,
	DU_TOTAL = DU_KINDS + SPACE_KINDS,
	DU_OLD,
	DU_COUNT
};

static const struct column du_columns[DU_COUNT] = {
	[DU_USER] = { .title = "OWNER", .rank = 4 },
	[DU_RUN] = { .title = "RUN", .least = 32, .rank = 0 },
	[DU_STATE] = { .title = "STATE", .rank = 2 },
	[DU_AGE] = { .title = "AGE", .right = true, .rank = 1 },
	[DU_KINDS + SPACE_CHECKPOINTS] = { .title = "CHECKPOINTS", .right = true, .rank = 3 },
	[DU_KINDS + SPACE_LOGS] = { .title = "LOGS", .right = true, .rank = 5 },
	[DU_KINDS + SPACE_SPOOLS] = { .title = "SPOOLS", .right = true, .rank = 6 },
	[DU_KINDS + SPACE_OTHER] = { .title = "OTHER", .right = true, .rank = 7 },
	[DU_TOTAL] = { .title = "TOTAL", .right = true, .rank = 0 },
	[DU_OLD] = { .title = "COULD GO", .right = true, .rank = 3 },
};

/* --- what is there ---------------------------------------------------------------------------- */

/* Of what is over all that rm would free; of a live run the checkpoints that are past their use. */
static int64_t could_go(const json_t *run, const struct run_space *space)
{
	if (!run_state_is_final(run_state_from_name(js_str(run, "state", ""))))
		return space->old_checkpoints;
	return run_space_total(space) - (space->is_elsewhere ? space->bytes[SPACE_CHECKPOINTS] : 0);
}

static json_t *measure(const json_t *run, const char *dir, const char *user)
{
	json_t *o = json_object();
	struct run_space space;

	run_space_measure(dir, &space);
	js_set_str(o, "run", js_str(run, "name", ""));
	js_set_str(o, "user", user);
	js_set_str(o, "owner", js_str(run, "owner", NULL));
	js_set_str(o, "group", js_str(run, "group", NULL));
	js_set_str(o, "state", js_str(run, "state", NULL));
	js_set_time(o, "ended", time_ms(run, "ended"));
	js_set_str(o, "dir", dir);
	js_set_str(o, "checkpoint_folder", space.checkpoints);
	for (int i = 0; i < SPACE_KINDS; i++)
		js_set_int(o, space_name((enum space_kind)i), space.bytes[i]);
	js_set_int(o, "bytes", run_space_total(&space));
	js_set_int(o, "old_checkpoints", space.old_checkpoints);
	js_set_int(o, "could_go", could_go(run, &space));
	js_set_bool(o, "is_cut", space.is_cut);
	run_space_clear(&space);
	return o;
}

static int add_mine(struct ctl *ctl, json_t *list, struct err *err)
{
	json_t *runs = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err), *run;
	size_t i;

	json_array_foreach(runs, i, run) {
		if (run_is_listed(ctl, run, NULL))
			json_array_append_new(list, measure(run, js_str(run, "dir", ""), NULL));
	}
	json_decref(runs);
	return runs ? 0 : -1;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = js_int(*(json_t *const *)a, "bytes", 0),
		y = js_int(*(json_t *const *)b, "bytes", 0);

	return (x < y) - (x > y);
}

/* --- the table -------------------------------------------------------------------------------- */

static void put_size(struct cell *cell, int64_t bytes)
{
	char text[NUMBER_TEXT_MAX];

	cell->text = xstrdup(size_text(bytes, text));
}

static void fill_row(struct cell *row, const json_t *run, const struct style *style)
{
	int64_t ended_ms = time_ms(run, "ended");
	const char *state = js_str(run, "state", NULL);
	char age[CLOCK_TEXT_MAX];

	row[DU_RUN].text = clean_copy(js_str(run, "run", NULL), style);
	if (js_str(run, "dir", NULL)) { /* else it is the sum */
		row[DU_USER].text = clean_copy(js_str(run, "user", js_str(run, "owner", NULL)),
					       style);
		row[DU_STATE].text = clean_copy(state ? state : "?", style);
		row[DU_STATE].color = state ? state_color(state) : COLOR_NONE;
		row[DU_AGE].text = xstrdup(
			duration_text(ended_ms ? clock_wall_ms() - ended_ms : -1, age));
	}
	for (int i = 0; i < SPACE_KINDS; i++)
		put_size(&row[DU_KINDS + i], js_int(run, space_name((enum space_kind)i), 0));
	put_size(&row[DU_TOTAL], js_int(run, "bytes", 0));
	put_size(&row[DU_OLD], js_int(run, "could_go", 0));
}

/* As a run of its own, in the last line. */
static json_t *sum_of(const json_t *list)
{
	json_t *sum = json_pack("{s:s}", "run", "total"), *run;
	const char *keys[SPACE_KINDS + 2];
	size_t i;

	for (int k = 0; k < SPACE_KINDS; k++)
		keys[k] = space_name((enum space_kind)k);
	keys[SPACE_KINDS] = "bytes";
	keys[SPACE_KINDS + 1] = "could_go";
	json_array_foreach(list, i, run) {
		for (int k = 0; k < SPACE_KINDS + 2; k++)
			js_set_int(sum, keys[k], js_int(sum, keys[k], 0) + js_int(run, keys[k], 0));
	}
	return sum;
}

/* A run with a folder that is closed to us takes more than was counted. */
static void tell_cut(const struct ctl *ctl, const json_t *list)
{
	const char *first = NULL, *user = NULL;
	json_t *run;
	size_t i, count = 0;
	char *text;

	json_array_foreach(list, i, run) {
		if (!js_bool(run, "is_cut", false))
			continue;
		first = count++ ? first : js_str(run, "run", "");
		user = count > 1 ? user : js_str(run, "user", NULL);
	}
	if (count == 0)
		return;
	text = xasprintf("%s%s%s%s: not all of it is open to you: it takes more than this",
			 user ? user : "", user ? "/" : "", first, count > 1 ? " and others" : "");
	complain(ctl, text);
	free(text);
}

static void print_table(struct ctl *ctl, json_t *list)
{
	tell_cut(ctl, list);
	json_array_append_new(list, sum_of(list));
	print_rows(ctl, du_columns, DU_COUNT, list, fill_row);
	hint(ctl, "what is over can go%s: lbctl rm RUN, lbctl prune --older-than 30d --dry-run",
	     ctl->options.team ? ", by its owner" : "");
}

int du_run(struct ctl *ctl, struct err *err)
{
	json_t *list = json_array();
	int rc = team_is_meant(ctl) ? team_each(ctl, measure, list, err) : add_mine(ctl, list, err);
	size_t count = json_array_size(list);

	list = js_sorted(list, by_size);
	if (rc == 0 && ctl->options.json)
		print_json(json_incref(list));
	else if (rc == 0 && count > 0)
		print_table(ctl, list);
	if (rc == 0 && count == 0)
		complain(ctl, ls_is_of_some(ctl) ? "no such runs" : "no runs yet");
	json_decref(list);
	return rc < 0 ? -1 : count == 0 && ls_is_of_some(ctl) ? err_exit_status(ERR_NOT_FOUND) : 0;
}
