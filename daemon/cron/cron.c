/* SPDX-License-Identifier: MIT */
/* cron.c - the turns of cron: once a minute, and whenever an entry with jitter is due. */
#include "daemon/cron/cron_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fnv.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum {
	MINUTE_S = 60,
	HOUR_S = 3600,
	YEAR_S = 366 * 86400,
	BACK_S = 400 * 86400, /* so far back a zone is known */
	AHEAD_S = 9 * YEAR_S, /* and so far ahead: a 29 February may be eight years away */
	JUMP_MS = 2000,       /* less is a clock being disciplined */
};

/* --- zones ----------------------------------------------------------------------------------- */

static void forget_zones(struct cron *cron)
{
	for (size_t i = 0; i < cron->zone_count; i++)
		zone_clear(&cron->zones[i]);
	free(cron->zones);
	cron->zones = NULL;
	cron->zone_count = 0;
}

static void look_at_zones(struct cron *cron, int64_t now_s)
{
	bool are_current = now_s <= cron->zones_until_s - AHEAD_S + YEAR_S;

	for (size_t i = 0; i < cron->zone_count; i++)
		are_current = are_current && zone_is_current(&cron->zones[i], now_s);
	if (!are_current)
		forget_zones(cron);
}

/* A name was checked when its line was read; should the zone go later, UTC stands in. */
static const struct zone *zone_of(struct cron *cron, const char *name)
{
	int64_t now_s = clock_wall_ms() / 1000;
	struct zone zone;

	for (size_t i = 0; i < cron->zone_count; i++)
		if (strcmp(cron->zones[i].name, name) == 0)
			return &cron->zones[i];
	cron->zones_until_s = now_s + AHEAD_S;
	if (zone_load(&zone, name, now_s - BACK_S, cron->zones_until_s, NULL) < 0)
		zone = (struct zone){ .name = xstrdup(name) };
	cron->zones = xrealloc(cron->zones, (cron->zone_count + 1) * sizeof(zone));
	cron->zones[cron->zone_count] = zone;
	return &cron->zones[cron->zone_count++];
}

/* --- reading the folder ---------------------------------------------------------------------- */

static bool is_known(const json_t *problems, const char *text)
{
	const json_t *item;
	size_t i;

	json_array_foreach(problems, i, item) {
		if (strcmp(json_string_value(item), text) == 0)
			return true;
	}
	return false;
}

static void note_problem(void *arg, const struct err *why)
{
	json_array_append_new(arg, json_string(why->text));
}

/* Each problem is told once, when it is new. */
void cron_read_folder(struct cron *cron)
{
	json_t *problems = json_array(), *item;
	size_t i;

	cron_entries_clear(&cron->entries);
	cron_load(&cron->lbd->config.cron, cron->folder, &cron->entries, note_problem, problems);
	json_array_foreach(problems, i, item) {
		if (!is_known(cron->problems, json_string_value(item)))
			cron_event(cron, "cron_problem", "cron", json_string_value(item));
	}
	json_decref(cron->problems);
	cron->problems = problems;
}

/* --- one entry ------------------------------------------------------------------------------- */

/* The same moment for an entry each time, spread over all of them. */
static int64_t jitter_s(const struct cron_entry *entry)
{
	int64_t span_s = entry->settings.jitter_ms / 1000;

	return span_s > 0 ? (int64_t)((fnv_text(entry->name) >> 16) % (uint64_t)span_s) : 0;
}

int64_t cron_next_s(struct cron *cron, const struct cron_entry *entry, int64_t after_s)
{
	const struct zone *zone = zone_of(cron, entry->zone);
	int64_t next_s = cron_expr_next(&entry->expr, zone, after_s - jitter_s(entry),
					cron->zones_until_s);

	return next_s < 0 ? -1 : next_s + jitter_s(entry);
}

/* Is the newest time that should have gone well long past, and the one before it, too? */
static bool is_silent(struct cron *cron, const struct cron_entry *entry, int64_t now_s)
{
	struct ledger_cron_tick good;
	int64_t t;

	if (ledger_cron_tick_succeeded(cron->lbd->ledger, entry->name, &good, NULL) < 0)
		return false; /* it never did: each failure is told by itself */
	t = cron_next_s(cron, entry, good.scheduled_s + jitter_s(entry));
	for (int i = 0; i < 2 && t >= 0; i++)
		t = cron_next_s(cron, entry, t);
	return t >= 0 && t < now_s;
}

static void watch_silence(struct cron *cron, const struct cron_entry *entry,
			  struct cron_state *state, int64_t now_s)
{
	bool silent = is_silent(cron, entry, now_s);

	if (silent && !state->silent)
		cron_event(cron, "cron_silent", entry->name,
			   "it has not succeeded for more than two of its periods");
	state->silent = silent;
}

/* What came since the last turn, into the ledger. */
static void note_ticks(struct cron *cron, const struct cron_entry *entry, int64_t now_s,
		       int64_t jump_s)
{
	struct cron_state *state = cron_state_of(cron, entry->name);
	struct cron_span span = { state->seen_s, now_s - jitter_s(entry), jump_s };
	struct cron_plan plan = cron_plan(&entry->expr, zone_of(cron, entry->zone),
					  (enum cron_catch_up)entry->settings.catch_up, &span);
	bool is_disabled = state->disabled_by[0] != '\0';

	state->found_s = state->seen_s;
	state->seen_s = plan.seen_s;
	for (size_t i = 0; i < plan.count && !is_disabled; i++)
		cron_tick(cron, entry, plan.ticks[i], plan.count > 1);
	if (plan.passed_over > 0 && !is_disabled)
		cron_event(cron, "cron_missed", entry->name,
			   "times passed by; CATCH_UP says which of "
			   "them are made up for");
	if (plan.count > 0 || plan.passed_over > 0 || state->seen_s - state->written_s > HOUR_S ||
	    state->seen_s < state->written_s)
		cron_state_write(cron, state, NULL);
}

/* What a line that was taken out would have been due for is not missed, should it come back. An
 * editor may take a moment, and a file that could not be read says nothing. */
static void pass_by_absent(struct cron *cron, int64_t now_s)
{
	bool is_known = json_array_size(cron->problems) == 0;

	for (size_t i = 0; is_known && i < cron->state_count; i++) {
		struct cron_state *state = cron->states[i];

		if (state->seen_s >= now_s - CRON_LATE_S ||
		    cron_entries_find(&cron->entries, state->name))
			continue;
		state->seen_s = now_s - CRON_LATE_S;
		if (state->seen_s - state->written_s > HOUR_S)
			cron_state_write(cron, state, NULL);
	}
}

/* It is due again, once the ledger can be written. */
static void take_ticks_back(struct cron *cron, const struct cron_entry *entry)
{
	struct cron_state *state = cron_state_of(cron, entry->name);

	state->seen_s = state->found_s;
	state->written_s = 0;
}

/* The ticks of all are committed before anything is submitted: a submission that fails takes back
 * whatever is not. */
static int note_all(struct cron *cron, int64_t now_s, int64_t jump_s, struct err *err)
{
	size_t count = cron->entries.count;

	for (size_t i = 0; i < count; i++)
		note_ticks(cron, &cron->entries.items[i], now_s, jump_s);
	pass_by_absent(cron, now_s);
	if (engine_settle(cron->lbd->engine, err) == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		take_ticks_back(cron, &cron->entries.items[i]);
	return -1;
}

static int look_after_all(struct cron *cron, int64_t now_s, struct err *err)
{
	for (size_t i = 0; i < cron->entries.count; i++) {
		const struct cron_entry *entry = &cron->entries.items[i];
		struct cron_state *state = cron_state_of(cron, entry->name);

		cron_look_after(cron, entry);
		if (state->disabled_by[0] == '\0')
			watch_silence(cron, entry, state, now_s);
	}
	return engine_settle(cron->lbd->engine, err);
}

/* --- the turn -------------------------------------------------------------------------------- */

/* How far the wall clock was set since the last turn. */
static int64_t jump_s(struct cron *cron, int64_t wall_ms)
{
	int64_t mono_ms = clock_mono_ms();
	int64_t jump_ms = (wall_ms - cron->wall_ms) - (mono_ms - cron->mono_ms);
	bool is_first = cron->wall_ms == 0;

	cron->wall_ms = wall_ms;
	cron->mono_ms = mono_ms;
	return is_first || (jump_ms < JUMP_MS && jump_ms > -JUMP_MS) ? 0 : jump_ms / 1000;
}

static int64_t next_turn_s(struct cron *cron, int64_t now_s)
{
	int64_t at_s = now_s - now_s % MINUTE_S + MINUTE_S;

	for (size_t i = 0; i < cron->entries.count; i++) {
		int64_t next_s = jitter_s(&cron->entries.items[i])
					 ? cron_next_s(cron, &cron->entries.items[i], now_s)
					 : -1;

		if (next_s >= 0 && next_s < at_s)
			at_s = next_s;
	}
	return at_s;
}

static void on_turn(uv_timer_t *timer)
{
	struct cron *cron = timer->data;
	int64_t wall_ms = clock_wall_ms(), now_s = wall_ms / 1000, set_s = jump_s(cron, wall_ms);
	struct err err = { 0 };

	look_at_zones(cron, now_s);
	cron_read_folder(cron);
	if (note_all(cron, now_s, set_s, &err) < 0 || look_after_all(cron, now_s, &err) < 0)
		log_warn("cron: %s", err.text);
	wall_ms = next_turn_s(cron, now_s) * 1000 - clock_wall_ms();
	uv_timer_start(timer, on_turn, wall_ms > 0 ? (uint64_t)wall_ms : 1, 0);
}

struct cron *cron_open(struct lbd *lbd, struct err *err)
{
	struct cron *cron = xcalloc(1, sizeof(*cron));

	cron->lbd = lbd;
	cron->folder = lbd->config.cron.folder ? xstrdup(lbd->config.cron.folder)
					       : path_join("%s/cron", lbd->config.home);
	cron->problems = json_array();
	uv_timer_init(lbd->loop, &cron->timer);
	cron->timer.data = cron;
	if (cron_states_load(cron, err) < 0) {
		cron_close(cron);
		return NULL;
	}
	uv_timer_start(&cron->timer, on_turn, 0, 0);
	return cron;
}

static void on_closed(uv_handle_t *handle)
{
	struct cron *cron = handle->data;

	cron_entries_clear(&cron->entries);
	forget_zones(cron);
	cron_states_free(cron);
	json_decref(cron->problems);
	free(cron->folder);
	free(cron);
}

void cron_close(struct cron *cron)
{
	if (cron)
		uv_close((uv_handle_t *)&cron->timer, on_closed);
}
