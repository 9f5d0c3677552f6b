/* SPDX-License-Identifier: MIT */
/* zone.c - finds a zone's changes by asking the C library, and looks them up. */
#include "daemon/calendar/zone.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

/* No zone changes twice within this time. */
enum { STRIDE_S = 7 * 86400 };

/* --- reading the system's zones -------------------------------------------------------------- */

/* glibc takes a name it does not know for UTC, silently; and a name is not a path. */
static int zone_check(const char *name, struct err *err)
{
	const char *folder = getenv("TZDIR") ? getenv("TZDIR") : "/usr/share/zoneinfo";
	char *path = path_join("%s/%s", folder, name);
	int rc = 0;

	if (strcmp(name, "UTC") != 0 &&
	    (name[0] == '/' || strstr(name, "..") || access(path, R_OK) < 0))
		rc = err_set(err, ERR_USAGE,
			     "there is no time zone \"%s\"; a name like "
			     "Europe/Berlin or UTC is wanted (see %s)",
			     name, folder);
	free(path);
	return rc;
}

static int64_t offset_now(int64_t utc_s)
{
	time_t t = (time_t)utc_s;
	struct tm tm;

	return localtime_r(&t, &tm) ? tm.tm_gmtoff : 0;
}

/* The first second in (low, high] that has high's offset. */
static int64_t find_change(int64_t low, int64_t high)
{
	int64_t offset = offset_now(high);

	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (offset_now(middle) == offset)
			high = middle;
		else
			low = middle;
	}
	return high;
}

static void read_changes(struct zone *out, int64_t from_s, int64_t until_s)
{
	size_t room = 0;

	out->offset_s = offset_now(from_s);
	for (int64_t t = from_s; t < until_s; t += STRIDE_S) {
		int64_t next = t + STRIDE_S < until_s ? t + STRIDE_S : until_s;
		int64_t before_s = offset_now(t), after_s = offset_now(next);

		if (before_s == after_s)
			continue;
		if (out->count == room)
			out->changes = xrealloc(out->changes,
						(room = room * 2 + 8) * sizeof(*out->changes));
		out->changes[out->count++] = (struct zone_change){ find_change(t, next), before_s,
								   after_s };
	}
}

int zone_load(struct zone *out, const char *name, int64_t from_s, int64_t until_s, struct err *err)
{
	char *own = getenv("TZ") ? xstrdup(getenv("TZ")) : NULL;

	*out = (struct zone){ 0 };
	if (name && name[0] != '\0') {
		if (zone_check(name, err) < 0) {
			free(own);
			return -1;
		}
		clock_set_zone(name);
	}
	out->name = xstrdup(name ? name : "");
	read_changes(out, from_s, until_s);
	clock_set_zone(own);
	free(own);
	return 0;
}

/* localtime_r reads the file of the machine's zone once, and tzset whenever it is another one. */
bool zone_is_current(const struct zone *zone, int64_t utc_s)
{
	if (zone->name[0])
		return true;
	tzset();
	return utc_s + offset_now(utc_s) == zone_local_s(zone, utc_s);
}

void zone_clear(struct zone *zone)
{
	free(zone->name);
	free(zone->changes);
	*zone = (struct zone){ 0 };
}

/* --- asking the table ------------------------------------------------------------------------ */

/* How many changes lie at or before this instant. */
static size_t changes_until(const struct zone *zone, int64_t utc_s)
{
	size_t low = 0, high = zone->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (zone->changes[middle].at_s <= utc_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct zone_change *zone_last_change(const struct zone *zone, int64_t utc_s)
{
	size_t n = changes_until(zone, utc_s);

	return n > 0 ? &zone->changes[n - 1] : NULL;
}

const struct zone_change *zone_next_change(const struct zone *zone, int64_t utc_s)
{
	size_t n = changes_until(zone, utc_s);

	return n < zone->count ? &zone->changes[n] : NULL;
}

int64_t zone_local_s(const struct zone *zone, int64_t utc_s)
{
	const struct zone_change *change = zone_last_change(zone, utc_s);

	return utc_s + (change ? change->after_s : zone->offset_s);
}
