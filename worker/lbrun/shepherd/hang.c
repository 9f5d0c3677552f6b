/* SPDX-License-Identifier: MIT */
/* hang.c - a trainer that hangs: first its stacks, then its end, then another start in place.
 *
 * While the stacks are written it may come back to life, and then it lives on. */
#include "worker/lbrun/shepherd/shepherd.h"

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
	journal_note(&s->journal, s->facts.launch.number, "stacks", "%s/%s", s->folder,
		     s->stacks.name);
	output_say(&s->output, "stacks of the trainer: %s", s->stacks.name);
}

void hang_write_stacks(struct shepherd *s, bool is_hang, int64_t now_ms)
{
	struct err why = { 0 };
	char text[120];

	if (is_hang) {
		watch_describe(&s->watch, now_ms, text, sizeof(text));
		output_say(&s->output, "the trainer hangs: %s", text);
		s->hang_sign_ms = s->watch.sign_ms;
	}
	if (stacks_start(&s->stacks, s->folder, s->facts.launch.number, s->policy.is_srun, now_ms,
			 &why) < 0)
		output_say(&s->output, "no stacks: %s", why.text);
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

bool hang_is_watched(const struct shepherd *s)
{
	return s->facts.launch.is_open && !s->facts.launch.has_ended;
}

void hang_turn(struct shepherd *s, int64_t now_ms)
{
	excuse(s, now_ms);
	if (stacks_turn(&s->stacks, now_ms))
		tell_stacks(s);
}
