/* SPDX-License-Identifier: MIT */
/* goodput.c - goes through attempts and launches in time, and gives each stretch its place. */
#include "daemon/runs/goodput.h"

#include <math.h>
#include <string.h>

struct walk {
	struct goodput *out;
	int64_t at_ms, since_ms, end_ms;
};

/* Clocks of hosts differ: what would go backwards takes no time. */
static void spend(struct walk *w, int64_t until_ms, enum spent spent)
{
	int64_t from_ms = w->at_ms > w->since_ms ? w->at_ms : w->since_ms;

	if (until_ms > w->end_ms)
		until_ms = w->end_ms;
	if (until_ms > from_ms)
		w->out->ms[spent] += until_ms - from_ms;
	if (until_ms > w->at_ms)
		w->at_ms = until_ms;
}

static void walk_launch(struct walk *w, const struct goodput_launch *l, int64_t end_ms)
{
	enum spent begin = l->resumed_from_step >= 0 ? SPENT_RESTORE : SPENT_STARTUP;
	enum spent tail = l->cause == CAUSE_HANG ? SPENT_HANG : SPENT_LOST;

	spend(w, l->started_ms, SPENT_STARTUP);
	if (l->first_step_ms == 0) {
		spend(w, end_ms, l->cause == CAUSE_HANG ? SPENT_HANG : begin);
		return;
	}
	spend(w, l->first_step_ms, begin);
	if (l->ended_ms == 0 || l->cause == CAUSE_COMPLETED) {
		spend(w, end_ms, SPENT_PRODUCTIVE);
		return;
	}
	spend(w, l->saved_ms, SPENT_PRODUCTIVE);
	spend(w, l->last_step_ms, SPENT_LOST);
	spend(w, end_ms, tail);
}

/* lbrun cannot tell why it was ended from outside: the attempt's cause can. */
static void walk_launch_of(struct walk *w, const struct goodput_attempt *a,
			   const struct goodput_launch *l, int64_t end_ms)
{
	enum cause cause = l->cause == CAUSE_LOST || l->cause == CAUSE_NONE ? a->cause : l->cause;
	const int64_t *ms = w->out->ms;
	int64_t before_ms = ms[SPENT_LOST] + ms[SPENT_HANG];

	walk_launch(w, l, end_ms);
	w->out->wasted_ms[cause] += ms[SPENT_LOST] + ms[SPENT_HANG] - before_ms;
	if (l->ended_ms > w->since_ms && l->ended_ms <= w->end_ms)
		w->out->ends[cause]++;
}

static void walk_attempt(struct walk *w, const struct goodput_attempt *a)
{
	int64_t end_ms = a->ended_ms ? a->ended_ms : w->end_ms;

	spend(w, a->started_ms ? a->started_ms : end_ms, SPENT_QUEUE);
	for (size_t i = 0; i < a->launch_count; i++) {
		const struct goodput_launch *l = &a->launches[i];

		walk_launch_of(w, a, l, l->ended_ms ? l->ended_ms : end_ms);
	}
	spend(w, end_ms, a->launch_count ? SPENT_OTHER : SPENT_STARTUP);
}

void goodput_count(const struct goodput_attempt *attempts, size_t count, int64_t created_ms,
		   int64_t since_ms, int64_t end_ms, struct goodput *out)
{
	struct walk w = { out, created_ms, since_ms, end_ms };

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < count; i++) {
		spend(&w, attempts[i].created_ms, i == 0 ? SPENT_OTHER : SPENT_PAUSE);
		walk_attempt(&w, &attempts[i]);
	}
	spend(&w, end_ms, SPENT_PAUSE);
	for (int i = 0; i < SPENT_COUNT; i++)
		out->total_ms += out->ms[i];
	out->ettr = out->total_ms > 0 ? (double)out->ms[SPENT_PRODUCTIVE] / (double)out->total_ms
				      : NAN;
}

void goodput_leave_out(struct goodput *out, int64_t from_ms, int64_t to_ms, int64_t since_ms,
		       int64_t end_ms)
{
	int64_t ms;

	from_ms = from_ms > since_ms ? from_ms : since_ms;
	to_ms = to_ms < end_ms ? to_ms : end_ms;
	ms = to_ms > from_ms ? to_ms - from_ms : 0;
	ms = ms < out->ms[SPENT_PAUSE] ? ms : out->ms[SPENT_PAUSE];
	out->ms[SPENT_PAUSE] -= ms;
	out->total_ms -= ms;
	out->ettr = out->total_ms > 0 ? (double)out->ms[SPENT_PRODUCTIVE] / (double)out->total_ms
				      : NAN;
}

int64_t goodput_moment(int64_t now_ms, int64_t seconds_back)
{
	if (seconds_back <= 0)
		return now_ms;
	return seconds_back > now_ms / 1000 ? 0 : now_ms - seconds_back * 1000;
}

int64_t goodput_interruptions(const struct goodput *g)
{
	int64_t count = 0;

	for (int i = CAUSE_NONE + 1; i < CAUSE_COUNT; i++) {
		if (i != CAUSE_COMPLETED && i != CAUSE_KILLED)
			count += g->ends[i];
	}
	return count;
}
