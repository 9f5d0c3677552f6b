/* SPDX-License-Identifier: MIT */
/* hang.c - a trainer that hangs: first its stacks, then its end, then another start in place.
 *
 * While the stacks are written it may come back to life, and then it lives on. */
#include <stdio.h>

#include "common/base/paths.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"

enum {
	/* We look at our orders every 2 s: who finds that more time has passed was stopped itself,
	 * or waited for a file system, and the trainer most likely was, too. */
	LOST_MS = 5000,
};

static void tell_stacks(struct shepherd *s)
{
	if (!s->stacks.name[0]) {
		output_say(&s->output, "the stacks of the trainer could not be written");
		return;
	}
	journal_note(&s->journal, s->launch.number, "stacks", "%s/%s", s->folder, s->stacks.name);
	output_say(&s->output, "stacks of the trainer: %s", s->stacks.name);
}

static void end_it(struct shepherd *s, int64_t now_ms)
{
	char text[240];
	char why[120];

	watch_describe(&s->watch, now_ms, why, sizeof(why));
	if (s->stacks.name[0])
		snprintf(text, sizeof(text), "hung: %s; %s", why, s->stacks.name);
	else
		snprintf(text, sizeof(text), "hung: %s", why);
	ask_to_stop(s, STOP_HUNG, false, now_ms, text);
}

bool hang_write_stacks(struct shepherd *s, int64_t now_ms)
{
	struct err why = { 0 };

	if (stacks_start(&s->stacks, s->folder, s->launch.number, launcher_is_srun(&s->params),
			 now_ms, &why) == 0)
		return true;
	output_say(&s->output, "no stacks: %s", why.text);
	return false;
}

static void on_hang(struct shepherd *s, int64_t now_ms)
{
	char text[120];

	if (s->hang_sign_ms == s->watch.sign_ms) { /* its stacks are written */
		end_it(s, now_ms);
		return;
	}
	watch_describe(&s->watch, now_ms, text, sizeof(text));
	output_say(&s->output, "the trainer hangs: %s", text);
	s->hang_sign_ms = s->watch.sign_ms;
	if (!hang_write_stacks(s, now_ms))
		end_it(s, now_ms);
}

/* Time that is not the trainer's fault. */
static void excuse(struct shepherd *s, int64_t now_ms)
{
	int64_t passed_ms = s->turn_ms ? now_ms - s->turn_ms : 0;

	s->turn_ms = now_ms;
	if (passed_ms > LOST_MS || s->output.is_blocked)
		watch_excuse(&s->watch, passed_ms);
	if (s->output.read_ms > s->watch.sign_ms)
		watch_output(&s->watch, s->output.read_ms);
}

static bool is_watched(const struct shepherd *s)
{
	return s->phase == PHASE_RUN && s->stop.why == STOP_NOT && !s->launch.has_ended;
}

void hang_turn(struct shepherd *s, int64_t now_ms)
{
	excuse(s, now_ms);
	if (stacks_turn(&s->stacks, now_ms))
		tell_stacks(s);
	if (is_watched(s) && s->stacks.pid == 0 && watch_is_hung(&s->watch, now_ms))
		on_hang(s, now_ms);
}

int64_t hang_next_ms(const struct shepherd *s)
{
	if (s->stacks.pid > 0)
		return stacks_next_ms(&s->stacks);
	return is_watched(s) ? watch_next_ms(&s->watch) : INT64_MAX;
}
