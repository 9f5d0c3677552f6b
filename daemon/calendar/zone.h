/* SPDX-License-Identifier: MIT */
/* zone.h - a time zone as a table: where it stands from UTC, and when that changes.
 *
 * Read once from the system's zone files and pure from then on, so that what a periodic job does in
 * the night the clocks change is a function that can be tested for every such night. */
#ifndef DAEMON_CALENDAR_ZONE_H
#define DAEMON_CALENDAR_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct zone_change {
	int64_t at_s;              /* seconds since 1970, UTC */
	int64_t before_s, after_s; /* seconds east of UTC */
};

struct zone {
	char *name;                  /* "" = the machine's own */
	int64_t offset_s;            /* before the first change */
	struct zone_change *changes; /* in order */
	size_t count;
};

/* Reads what holds in [from_s, until_s). `name` is one of the tz database ("Europe/Berlin"),
 * or NULL or "" for the machine's own ($TZ, /etc/localtime). ERR_USAGE when there is no such zone.
 * It switches $TZ for a moment: call it from the main thread. Clear with zone_clear. */
int zone_load(struct zone *out, const char *name, int64_t from_s, int64_t until_s, struct err *err);
void zone_clear(struct zone *zone);
/* Of the machine's own: it is at this instant where the table has it. False: somebody has set it
 * anew (timedatectl, a journey), and it is to be loaded again. From the main thread, too. */
bool zone_is_current(const struct zone *zone, int64_t utc_s);

/* The last change at or before this instant; NULL when there is none. Borrowed. */
const struct zone_change *zone_last_change(const struct zone *zone, int64_t utc_s);
/* The first change after this instant; NULL when there is none. Borrowed. */
const struct zone_change *zone_next_change(const struct zone *zone, int64_t utc_s);

/* What a clock on the wall shows, as seconds: feed it to gmtime_r. */
int64_t zone_local_s(const struct zone *zone, int64_t utc_s);

#endif
