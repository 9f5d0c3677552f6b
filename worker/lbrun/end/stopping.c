/* SPDX-License-Identifier: MIT */
/* stopping.c - three deadlines, moved forward by stronger reasons and never back. */
#include "worker/lbrun/end/stopping.h"

void stopping_init(struct stopping *s, int64_t kill_wait_ms)
{
	*s = (struct stopping){ .why = STOP_NOT };
	for (int i = 0; i < STEP_COUNT; i++)
		s->due_ms[i] = INT64_MAX;
	s->scheduler_grace_ms = kill_wait_ms > 0 ? kill_wait_ms / 6 * 5 : SCHEDULER_GRACE_MS;
}

static void due(struct stopping *s, enum stop_step step, int64_t at_ms)
{
	if (at_ms < s->due_ms[step])
		s->due_ms[step] = at_ms;
}

void stopping_request(struct stopping *s, enum stop_why why, int64_t now_ms, int64_t grace_ms,
		      bool listens)
{
	/* The same reason again may be more urgent: a kill after a stop. */
	if (why < s->why || (why == s->why && grace_ms >= s->grace_ms))
		return;
	s->why = why;
	s->grace_ms = grace_ms;
	if (why == STOP_SIGNALLED && grace_ms > s->scheduler_grace_ms)
		grace_ms = s->scheduler_grace_ms;
	due(s, STEP_ASK, now_ms);
	if (!listens)
		due(s, STEP_TERM, now_ms);
	else if (why == STOP_WARNED)
		due(s, STEP_TERM,
		    now_ms + (grace_ms > WARN_TO_TERM_MS ? grace_ms : WARN_TO_TERM_MS));
	else
		due(s, STEP_TERM, now_ms + grace_ms / 3);
	/* A warning is no order: what ignores it may work on until the limit itself. */
	if (why != STOP_WARNED)
		due(s, STEP_KILL, now_ms + grace_ms);
}

void stopping_request_now(struct stopping *s, enum stop_why why, int64_t now_ms)
{
	if (why > s->why)
		s->why = why;
	due(s, STEP_KILL, now_ms);
}

enum stop_step stopping_due(const struct stopping *s, int64_t now_ms)
{
	/* Strongest first: once SIGKILL is due nothing weaker matters. */
	for (int step = STEP_KILL; step > STEP_NONE; step--) {
		if (s->done[step] || s->due_ms[step] > now_ms)
			continue;
		/* Asking comes before SIGTERM even when both are due at once. */
		return step == STEP_TERM && !s->done[STEP_ASK] ? STEP_ASK : (enum stop_step)step;
	}
	return STEP_NONE;
}

void stopping_took(struct stopping *s, enum stop_step step)
{
	s->done[step] = true;
	if (step == STEP_KILL)
		s->done[STEP_ASK] = s->done[STEP_TERM] = true;
}

int64_t stopping_next_ms(const struct stopping *s)
{
	int64_t next = INT64_MAX;

	for (int step = STEP_ASK; step < STEP_COUNT; step++) {
		if (!s->done[step] && s->due_ms[step] < next)
			next = s->due_ms[step];
	}
	return next;
}
