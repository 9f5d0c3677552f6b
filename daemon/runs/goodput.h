/* SPDX-License-Identifier: MIT */
/* goodput.h - where the time of a run went, from the rows of the ledger. Pure.
 *
 * Every millisecond from the run's creation to its end, or now, has just one place. Steps are
 * productive when a checkpoint kept them, when the launch completed, or as long as it still
 * runs. */
#ifndef DAEMON_RUNS_GOODPUT_H
#define DAEMON_RUNS_GOODPUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/run/run_state.h"
#include "common/run/spent.h"

struct goodput_launch {
	int64_t started_ms, ended_ms; /* 0 = it runs */
	enum cause cause;
	int64_t resumed_from_step;                     /* -1 = from scratch */
	int64_t first_step_ms, last_step_ms, saved_ms; /* 0 = none */
};

struct goodput_attempt {
	enum cause cause;
	int64_t created_ms, started_ms, ended_ms; /* 0 = not yet */
	const struct goodput_launch *launches;
	size_t launch_count;
};

struct goodput {
	int64_t ms[SPENT_COUNT];
	int64_t wasted_ms[CAUSE_COUNT]; /* of lost and hang: by what ended the launch … */
	int64_t ends
		/* … and how many ended so; where lbrun could not tell, the attempt's */
		[CAUSE_COUNT];
	int64_t total_ms; /* their sum */
	double ettr;      /* productive of total; NaN when there was no time */
};

/* In order of time. Only what lies between since_ms and end_ms (the run's end, or now) is
 * counted. */
void goodput_count(const struct goodput_attempt *attempts, size_t count, int64_t created_ms,
		   int64_t since_ms, int64_t end_ms, struct goodput *out);

/* The moment that many seconds before now, as somebody asks for it: none is before 1970, and none
 * behind now. */
int64_t goodput_moment(int64_t now_ms, int64_t seconds_back);

/* How many launches ended otherwise than completed, and not by a person's order. */
int64_t goodput_interruptions(const struct goodput *g);

/* Between its end and a restart nobody wanted the run: that stretch of its pauses, as far as it
 * lies between since_ms and end_ms, is no time of the run's. */
void goodput_leave_out(struct goodput *out, int64_t from_ms, int64_t to_ms, int64_t since_ms,
		       int64_t end_ms);

#endif
