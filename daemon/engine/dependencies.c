/* SPDX-License-Identifier: MIT */
/* dependencies.c - runs that follow runs, by name. A name means whatever the ledger says of it now:
 * a run that was relaunched or restarted is not over. */
#include <stdio.h>
#include <string.h>

#include "daemon/engine/state.h"

/* RUN_STATE_COUNT: there is no such run. A ledger that cannot be read says nothing: then it
 * waits. */
static enum run_state state_of(struct engine *e, const char *name)
{
	const struct run *live = engine_find(e, name);
	struct ledger_run row;
	struct err err = { 0 };

	if (live)
		return live->state;
	if (ledger_run_find(e->ledger, name, &row, &err) == 0)
		return row.state;
	return err.code == ERR_NOT_FOUND ? RUN_STATE_COUNT : RUN_CREATED;
}

static void look_at(struct engine *e, struct run *run, const struct key_strings *names,
		    bool must_complete)
{
	for (size_t i = 0; i < names->count && run->dependencies != DEPENDENCIES_BROKEN; i++) {
		const char *name = names->items[i];
		enum run_state state = state_of(e, name);
		bool is_over = state == RUN_STATE_COUNT || run_state_is_final(state);
		const char *word = state == RUN_STATE_COUNT ? "unknown" : run_state_phrase(state);

		if (is_over && must_complete && state != RUN_COMPLETED) {
			run->dependencies = DEPENDENCIES_BROKEN;
			snprintf(run->dependencies_text, sizeof(run->dependencies_text),
				 "run.after_ok: %s was to complete first, and is %s", name, word);
		} else if (!is_over && run->dependencies == DEPENDENCIES_MET) {
			run->dependencies = DEPENDENCIES_PENDING;
			snprintf(run->dependencies_text, sizeof(run->dependencies_text),
				 "the end of %s, which is %s", name, word);
		}
	}
}

void engine_look_at_dependencies(struct engine *e, struct run *run)
{
	run->dependencies = DEPENDENCIES_MET;
	run->dependencies_text[0] = '\0';
	if (run->state != RUN_CREATED || run->has_attempt)
		return;
	look_at(e, run, &run->spec.after_ok, true);
	look_at(e, run, &run->spec.after, false);
}

void engine_wake_dependents(struct engine *e)
{
	for (struct run *run = e->runs; run; run = run->next)
		if (run->dependencies == DEPENDENCIES_PENDING)
			run->dirty = true;
}

bool engine_has(struct engine *e, const char *name)
{
	return engine_find(e, name) != NULL;
}

static bool names(const struct key_strings *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (strcmp(list->items[i], name) == 0)
			return true;
	}
	return false;
}

const char *engine_follower(const struct engine *e, const char *name)
{
	for (const struct run *run = e->runs; run; run = run->next) {
		if (run->state == RUN_CREATED && !run->has_attempt &&
		    (names(&run->spec.after, name) || names(&run->spec.after_ok, name)))
			return run->name;
	}
	return NULL;
}
