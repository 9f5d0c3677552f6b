/* SPDX-License-Identifier: MIT */
/* calendar/ - when something periodic is due, and how people write that down. Makes no run.
 *
 * cron_expr.h - when a periodic job is due: the five fields of crontab(5), and what a clock change
 * does to them. Pure.
 *
 * Debian's cron is the model (cron(8), "Notes"): in the night the clocks change by less than three
 * hours, a job at a fixed time that would be skipped runs once, right after the change, and one
 * that would come twice runs once. A job whose minute or hour begins with `*` follows the clock. */
#ifndef DAEMON_CALENDAR_CRON_EXPR_H
#define DAEMON_CALENDAR_CRON_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "daemon/calendar/zone.h"

struct cron_expr {
	uint64_t minutes;             /* bit n = minute n */
	uint32_t hours, days, months; /* days from bit 1, months from bit 1 (January) */
	uint32_t weekdays;            /* bit 0 = Sunday */
	/* the field begins with `*`: then the other one decides; when neither does, either is
	 * enough */
	bool any_day, any_weekday;
	bool follows_clock; /* minute or hour begins with `*` */
};

/* "0,30 9-17 * * mon-fri", "@daily", … Lists, ranges, steps and three-letter names; Sunday
 * is 0 or 7. ERR_USAGE says which field is wrong and what is allowed. */
int cron_expr_parse(const char *text, struct cron_expr *out, struct err *err);

/* Does it name days that no month of its has (31 February)? */
bool cron_expr_is_never(const struct cron_expr *expr);

/* Is a job due in the minute that begins at `minute_s` (UTC, a multiple of 60)? */
bool cron_expr_due(const struct cron_expr *expr, const struct zone *zone, int64_t minute_s);

/* The first minute after `after_s` in which it is due, or -1 when there is none before `until_s`
 * (30 February). */
int64_t cron_expr_next(const struct cron_expr *expr, const struct zone *zone, int64_t after_s,
		       int64_t until_s);

#endif
