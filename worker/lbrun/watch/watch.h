/* SPDX-License-Identifier: MIT */
/* watch/ - looks at a running trainer: hung, slow, out of memory or of disk?
 *
 * watch.h - is the trainer hung? Pure: the clock is an argument, and it is monotonic.
 *
 * Each phase has its own limit, counted from the last sign of life in it. The limit of a step is
 * learned: five times the median of what steps took, never less than a minute. A trainer that only
 * prints is judged by its silence, and only when a person asked for that. */
#ifndef LBRUN_WATCH_WATCH_H
#define LBRUN_WATCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/attempt_watch.h"

enum watch_phase {
	WATCH_SILENT, /* it never reported */
	WATCH_SETUP,  /* and its end, after "bye" */
	WATCH_TRAIN,
	WATCH_CHECKPOINT,
	WATCH_EVAL,
	WATCH_PHASE_COUNT
};

enum {
	WATCH_SKIP_STEPS = 5,  /* the first ones compile, allocate, fill caches */
	WATCH_LEARN_STEPS = 5, /* so many intervals before a limit is learned */
	WATCH_WINDOW = 64,     /* intervals remembered */
	WATCH_FACTOR = 5,
	WATCH_FLOOR_MS = 60 * 1000,
};

struct watch {
	struct attempt_watch limits;
	enum watch_phase phase;
	bool tells_phases; /* it sends "phase" lines */
	int64_t leader;    /* lowest rank that told a phase or a step; -1 = none yet */
	int64_t sign_ms;   /* last sign of life */
	int64_t step_ms;   /* the last step in this phase; -1 = none */
	int64_t steps;     /* seen so far */
	int64_t learned;   /* intervals measured so far; the window keeps the newest */
	int64_t intervals[WATCH_WINDOW];
};

void watch_init(struct watch *w, const struct attempt_watch *limits, int64_t now_ms);
/* Some sensible line that is neither a phase nor a step. */
void watch_sign(struct watch *w, int64_t now_ms);
/* Phases and steps are those of the lowest rank that tells them; what others tell is a sign of
 * life only. `name` as in the line: setup, train, checkpoint, eval. */
void watch_phase(struct watch *w, int64_t rank, const char *name, int64_t now_ms);
void watch_step(struct watch *w, int64_t rank, int64_t now_ms);
void watch_bye(struct watch *w, int64_t now_ms);
/* It printed something. */
void watch_output(struct watch *w, int64_t now_ms);
/* Time in which it could not have made progress, or we could not have seen it. */
void watch_excuse(struct watch *w, int64_t ms);

/* Five times the median of `count` intervals, at least the floor; 0 = too few to tell. */
int64_t watch_learned_ms(const int64_t *intervals, size_t count);
/* What is allowed in the present phase; 0 = no limit. */
int64_t watch_limit_ms(const struct watch *w);
/* When it will count as hung; INT64_MAX = never. */
int64_t watch_next_ms(const struct watch *w);
/* "no step for 1m05s, 1m00s are allowed (learned)" */
void watch_describe(const struct watch *w, int64_t now_ms, char *out, size_t size);

#endif
