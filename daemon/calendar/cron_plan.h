/* SPDX-License-Identifier: MIT */
/* cron_plan.h - which ticks of a periodic job to start now, after a minute or after a month. Pure.
 *
 * A tick is the minute in which a job was due. Some of them may lie behind: lbd was down, or the
 * clock was set. cron(8) of Debian is the model for clocks that are set: by less than three hours,
 * a job at a fixed time that was jumped over runs once, soon; by more, one goes on from there. */
#ifndef DAEMON_CALENDAR_CRON_PLAN_H
#define DAEMON_CALENDAR_CRON_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/calendar/cron_expr.h"

/* What becomes of ticks that nobody was there for. */
enum cron_catch_up { CATCH_UP_NONE, CATCH_UP_ONE, CATCH_UP_ALL };

/* More than this is not made up for: somebody who was away for a month does not want 720 jobs. */
enum { CRON_MAX_TICKS = 24 };

/* A tick that is found this late is still on time, as for cron. */
enum { CRON_LATE_S = 5 * 60 };

struct cron_span {
	int64_t seen_s; /* ticks up to here have been dealt with */
	int64_t now_s;  /* less the job's jitter */
	int64_t jump_s; /* how far the clock was set forward (back: < 0) in between */
};

struct cron_plan {
	int64_t ticks[CRON_MAX_TICKS]; /* to start, oldest first; seconds, UTC */
	size_t count;
	int64_t passed_over; /* ticks that were due and are not made up for */
	int64_t seen_s;      /* what to remember */
};

struct cron_plan cron_plan(const struct cron_expr *expr, const struct zone *zone,
			   enum cron_catch_up catch_up, const struct cron_span *span);

#endif
