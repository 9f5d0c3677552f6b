/* SPDX-License-Identifier: MIT */
/* team_goodput.c - counts a run's hours by weeks, now and then. */
#include "daemon/notify/team_goodput.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/team/team.h"
#include "daemon/runs/goodput_view.h"

enum {
	BUDGET_MS = 5, /* but one in any case: else a slow machine would never come to the last */
	LIVE_MS = 60 * 1000,
	OVER_MS = 3600 * 1000,
};

struct team_goodput {
	struct lbd *lbd;
	/* {ID:{"state","counted_ms","goodput"}}: of the export before this one, and so far of this
	 * one */
	json_t *known, *used;
	int64_t begun_ms;
	bool has_counted, is_behind;
};

struct team_goodput *team_goodput_open(struct lbd *lbd)
{
	struct team_goodput *t = xcalloc(1, sizeof(*t));

	t->lbd = lbd;
	t->known = json_object();
	return t;
}

void team_goodput_close(struct team_goodput *t)
{
	if (!t)
		return;
	json_decref(t->known);
	free(t);
}

void team_goodput_begin(struct team_goodput *t)
{
	t->used = json_object();
	t->begun_ms = clock_mono_ms();
	t->has_counted = t->is_behind = false;
}

bool team_goodput_end(struct team_goodput *t)
{
	json_decref(t->known);
	t->known = t->used;
	t->used = NULL;
	return !t->is_behind;
}

static json_t *window(const struct goodput_history *h, const char *week, int64_t since_ms,
		      int64_t until_ms)
{
	json_t *o = json_object(), *ms = json_object();
	struct goodput g;

	goodput_history_count(h, since_ms, until_ms, &g);
	if (week)
		js_set_str(o, "week", week);
	for (int i = 0; i < SPENT_COUNT; i++) {
		if (g.ms[i] > 0)
			js_set_int(ms, spent_name((enum spent)i), g.ms[i]);
	}
	json_object_set_new(o, "ms", ms);
	if (goodput_interruptions(&g) > 0)
		js_set_int(o, "interruptions", goodput_interruptions(&g));
	return o;
}

static json_t *weeks_of(const struct goodput_history *h, int64_t created_ms, int64_t now_ms)
{
	json_t *weeks = json_array();
	int64_t until_ms = now_ms;

	for (int week = 0; until_ms > created_ms && week <= TEAM_WEEKS; week++) {
		int64_t since_ms = week < TEAM_WEEKS ? clock_monday(now_ms, week) : 1;
		char name[CLOCK_TEXT_MAX];
		json_t *o = window(h, week < TEAM_WEEKS ? clock_week(since_ms, name) : TEAM_EARLIER,
				   since_ms, until_ms);

		if (json_object_size(json_object_get(o, "ms")) > 0)
			json_array_append(weeks, o);
		json_decref(o);
		until_ms = since_ms;
	}
	return weeks;
}

/* A new reference; NULL: the run cannot be read. */
static json_t *count(const struct team_goodput *t, const struct ledger_run *run, int64_t now_ms)
{
	int64_t created_ms = run->created_ms;
	struct err quiet = { 0 };
	int64_t gpus = goodput_gpus(t->lbd, run->dir, &quiet);
	struct goodput_history *h = gpus >= 0 ? goodput_history_read(t->lbd->ledger, run, &quiet)
					      : NULL;
	json_t *o;

	if (!h)
		return NULL;
	o = json_object();
	js_set_int(o, "gpus", gpus);
	json_object_set_new(o, "weeks", weeks_of(h, created_ms, now_ms));
	if (created_ms < now_ms - TEAM_RECENT_MS)
		json_object_set_new(o, "last7d", window(h, NULL, now_ms - TEAM_RECENT_MS, now_ms));
	goodput_history_free(h);
	return o;
}

static bool is_fresh(const json_t *entry, const struct ledger_run *run, int64_t now_ms)
{
	int64_t counted_ms = js_int(entry, "counted_ms", 0), age_ms = now_ms - counted_ms;
	/* what is told of its end may still come in */
	bool is_over = run_state_is_final(run->state) && counted_ms >= run->ended_ms + LIVE_MS;

	return entry && js_int(entry, "state", -1) == (int64_t)run->state && age_ms >= 0 &&
	       age_ms < (is_over ? OVER_MS : LIVE_MS);
}

json_t *team_goodput_of(struct team_goodput *t, const struct ledger_run *run, int64_t now_ms)
{
	char id[24];
	json_t *entry, *goodput;

	snprintf(id, sizeof(id), "%lld", (long long)run->id);
	entry = json_object_get(t->known, id);
	if (is_fresh(entry, run, now_ms)) {
		json_object_set(t->used, id, entry);
	} else if (t->has_counted && clock_mono_ms() - t->begun_ms >= BUDGET_MS) {
		t->is_behind = true;
		if (entry)
			json_object_set(t->used, id, entry);
	} else {
		t->has_counted = true;
		entry = json_object();
		js_set_int(entry, "state", run->state);
		js_set_int(entry, "counted_ms", now_ms);
		goodput = count(t, run, now_ms);
		if (goodput)
			json_object_set_new(entry, "goodput", goodput);
		json_object_set_new(t->used, id, entry);
	}
	return json_object_get(entry, "goodput");
}
