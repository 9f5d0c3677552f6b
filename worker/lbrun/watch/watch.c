/* SPDX-License-Identifier: MIT */
/* watch.c - a limit for each phase, that of a step learned. */
#include "worker/lbrun/watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compare.h"

static const struct {
	const char *name; /* in "phase" lines */
	const char *text; /* when it hung */
} phases[WATCH_PHASE_COUNT] = {
	[WATCH_SILENT] = { NULL, "no output" },
	[WATCH_SETUP] = { "setup", "no word while starting or ending" },
	[WATCH_TRAIN] = { "train", "no step" },
	[WATCH_CHECKPOINT] = { "checkpoint", "a checkpoint not done" },
	[WATCH_EVAL] = { "eval", "an evaluation not done" },
};

void watch_init(struct watch *w, const struct attempt_watch *limits, int64_t now_ms)
{
	*w = (struct watch){ .limits = *limits, .sign_ms = now_ms, .step_ms = -1, .leader = -1 };
}

static void enter(struct watch *w, enum watch_phase phase, int64_t now_ms)
{
	/* A step that was interrupted says nothing about how long steps take. */
	if (phase != w->phase)
		w->step_ms = -1;
	w->phase = phase;
	w->sign_ms = now_ms;
}

void watch_sign(struct watch *w, int64_t now_ms)
{
	enter(w, w->phase == WATCH_SILENT ? WATCH_SETUP : w->phase, now_ms);
}

static bool is_leader(struct watch *w, int64_t rank)
{
	if (w->leader >= 0 && rank >= w->leader)
		return rank == w->leader;
	w->leader = rank;
	w->step_ms = -1;
	return true;
}

void watch_phase(struct watch *w, int64_t rank, const char *name, int64_t now_ms)
{
	watch_sign(w, now_ms);
	if (!is_leader(w, rank))
		return;
	w->tells_phases = true;
	for (int i = WATCH_SETUP; i < WATCH_PHASE_COUNT; i++) {
		if (strcmp(phases[i].name, name) == 0)
			enter(w, (enum watch_phase)i, now_ms);
	}
}

void watch_bye(struct watch *w, int64_t now_ms)
{
	enter(w, WATCH_SETUP, now_ms);
}

void watch_step(struct watch *w, int64_t rank, int64_t now_ms)
{
	watch_sign(w, now_ms);
	if (!is_leader(w, rank))
		return;
	enter(w, WATCH_TRAIN, now_ms);
	w->steps++;
	if (w->step_ms >= 0 && w->steps > WATCH_SKIP_STEPS)
		w->intervals[w->learned++ % WATCH_WINDOW] = now_ms - w->step_ms;
	w->step_ms = now_ms;
}

void watch_output(struct watch *w, int64_t now_ms)
{
	if (w->phase == WATCH_SILENT)
		w->sign_ms = now_ms;
}

void watch_excuse(struct watch *w, int64_t ms)
{
	w->sign_ms += ms;
	if (w->step_ms >= 0)
		w->step_ms += ms;
}

int64_t watch_learned_ms(const int64_t *intervals, size_t count)
{
	int64_t sorted[WATCH_WINDOW];
	int64_t ms;

	if (count > WATCH_WINDOW)
		count = WATCH_WINDOW;
	if (count < WATCH_LEARN_STEPS)
		return 0;
	memcpy(sorted, intervals, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare_int64);
	ms = sorted[count / 2] * WATCH_FACTOR;
	return ms > WATCH_FLOOR_MS ? ms : WATCH_FLOOR_MS;
}

static int64_t longer(int64_t a, int64_t b)
{
	if (a == 0 || b == 0)
		return 0; /* no limit is the longest */
	return a > b ? a : b;
}

static int64_t step_limit_ms(const struct watch *w)
{
	int64_t learned;

	if (w->limits.step_ms != WATCH_AUTO)
		return w->limits.step_ms;
	learned = watch_learned_ms(w->intervals, (size_t)w->learned);
	if (learned == 0)
		return w->limits.setup_ms;
	/* Who tells no phases may be saving or evaluating just now. */
	if (!w->tells_phases)
		learned = longer(learned, longer(w->limits.checkpoint_ms, w->limits.eval_ms));
	return learned;
}

int64_t watch_limit_ms(const struct watch *w)
{
	switch (w->phase) {
	case WATCH_SILENT:
		return w->limits.output_ms;
	case WATCH_TRAIN:
		return step_limit_ms(w);
	case WATCH_CHECKPOINT:
		return w->limits.checkpoint_ms;
	case WATCH_EVAL:
		return w->limits.eval_ms;
	case WATCH_SETUP:
	case WATCH_PHASE_COUNT:
		break;
	}
	return w->limits.setup_ms;
}

int64_t watch_next_ms(const struct watch *w)
{
	int64_t limit_ms = watch_limit_ms(w);

	return limit_ms == 0 ? INT64_MAX : w->sign_ms + limit_ms;
}

void watch_describe(const struct watch *w, int64_t now_ms, char *out, size_t size)
{
	char silence[CLOCK_TEXT_MAX];
	char limit[CLOCK_TEXT_MAX];
	bool is_learned = w->phase == WATCH_TRAIN && w->limits.step_ms == WATCH_AUTO &&
			  w->learned >= WATCH_LEARN_STEPS;

	snprintf(out, size, "%s for %s (allowed: %s%s)", phases[w->phase].text,
		 duration_text(now_ms - w->sign_ms, silence),
		 duration_text(watch_limit_ms(w), limit), is_learned ? ", learned" : "");
}
