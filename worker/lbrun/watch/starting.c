/* SPDX-License-Identifier: MIT */
/* starting.c - the time in each phase of a start. */
#include "worker/lbrun/watch/starting.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json.h"

static size_t phase_of(struct starting *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->phases[i].name, name) == 0)
			return i;
	}
	if (s->count == STARTING_PHASES)
		return s->count - 1;
	if (s->count == STARTING_PHASES - 1)
		name = STARTING_OTHER;
	snprintf(s->phases[s->count].name, sizeof(s->phases[0].name), "%s", name);
	s->phases[s->count].ms = 0;
	return s->count++;
}

static void spend(struct starting *s, int64_t now_ms)
{
	if (s->count > 0 && now_ms > s->since_ms)
		s->phases[s->now].ms += now_ms - s->since_ms;
	s->since_ms = now_ms;
}

void starting_begin(struct starting *s, const char *name, int64_t now_ms)
{
	*s = (struct starting){ .is_on = true, .since_ms = now_ms };
	s->now = phase_of(s, name);
}

void starting_enter(struct starting *s, const char *name, int64_t now_ms)
{
	if (!s->is_on)
		return;
	spend(s, now_ms);
	s->now = phase_of(s, name);
}

void starting_spent(struct starting *s, const char *name, int64_t ms)
{
	if (s->is_on && ms > 0)
		s->phases[phase_of(s, name)].ms += ms;
}

void starting_sign(struct starting *s, int64_t now_ms)
{
	if (s->is_on && strcmp(s->phases[s->now].name, STARTING_SILENT) == 0)
		starting_enter(s, STARTING_SETUP, now_ms);
}

json_t *starting_end(struct starting *s, int64_t now_ms)
{
	json_t *phases;

	if (!s->is_on)
		return NULL;
	spend(s, now_ms);
	s->is_on = false;
	phases = json_object();
	for (size_t i = 0; i < s->count; i++) {
		if (s->phases[i].ms > 0)
			js_set_real(phases, s->phases[i].name, (double)s->phases[i].ms / 1000);
	}
	return phases;
}
