/* SPDX-License-Identifier: MIT */
/* warnings.h - what people want to hear of before it goes wrong: a training that its job's time
 * limit will cut short, a run that should run and does not. Pure; warn.c gathers the facts. */
#ifndef DAEMON_ENGINE_DECIDE_WARNINGS_H
#define DAEMON_ENGINE_DECIDE_WARNINGS_H

#include <stddef.h>
#include <stdint.h>

#include "common/run/run_state.h"
#include "slurm/scheduler.h"

enum {
	PACE_MIN_STEPS = 10,
	PACE_SHARE = 100
}; /* and a hundredth of the limit, before it is believed */

/* of one launch, as its step lines tell it */
struct pace {
	int64_t launch;
	int64_t first_step, first_ms, last_step, last_ms;
};

void pace_note(struct pace *pace, int64_t launch, int64_t step, int64_t time_ms);

/* (target - last) × time per step; -1 while nobody can tell. `limit_ms`: of the whole job. */
int64_t pace_left_ms(const struct pace *pace, int64_t target_step, int64_t limit_ms);

/* of a run that should run */
struct absence {
	enum run_state state;
	const struct job_status *seen; /* its job in the newest poll; NULL = not there */
	const char *down;     /* what the scheduler's silence looks like; "" = it answers */
	const char *refused;  /* why the last call came to nothing; "" = it did not */
	const char *last_end; /* how its last attempt ended; "" = there was none */
};

/* Why, as one line for people. */
void absence_explain(const struct absence *absence, char *out, size_t size);

#endif
