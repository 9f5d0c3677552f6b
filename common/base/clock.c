/* SPDX-License-Identifier: MIT */
/* clock.c - asks the system's clocks, and writes times and durations as text. */
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Time asleep counts: a laptop that woke up has waited. */
static const clockid_t mono = CLOCK_BOOTTIME;

static int64_t read_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}

int64_t clock_mono_ms(void)
{
	return read_ms(mono);
}

double clock_mono_us(void)
{
	struct timespec t;

	clock_gettime(mono, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static const char *local_text(int64_t wall_ms, const char *form, char out[CLOCK_TEXT_MAX])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (wall_ms <= 0 || !localtime_r(&seconds, &tm) ||
	    strftime(out, CLOCK_TEXT_MAX, form, &tm) == 0)
		snprintf(out, CLOCK_TEXT_MAX, "-");
	return out;
}

const char *clock_text(int64_t wall_ms, char out[CLOCK_TEXT_MAX])
{
	return local_text(wall_ms, "%Y-%m-%d %H:%M:%S", out);
}

const char *clock_text_zoned(int64_t wall_ms, char out[CLOCK_TEXT_MAX])
{
	return local_text(wall_ms, "%Y-%m-%d %H:%M:%S %z", out);
}

const char *duration_text(int64_t ms, char out[CLOCK_TEXT_MAX])
{
	long long s = ms / 1000;

	if (ms < 0)
		snprintf(out, CLOCK_TEXT_MAX, "-");
	else if (s < 60)
		snprintf(out, CLOCK_TEXT_MAX, "%llds", s);
	else if (s < 3600)
		snprintf(out, CLOCK_TEXT_MAX, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, CLOCK_TEXT_MAX, "%lldh%02lldm", s / 3600, s / 60 % 60);
	else
		snprintf(out, CLOCK_TEXT_MAX, "%lldd%02lldh", s / 86400, s / 3600 % 24);
	return out;
}

void clock_set_zone(const char *tz)
{
	if (tz)
		setenv("TZ", tz, 1);
	else
		unsetenv("TZ");
	tzset();
}

int64_t clock_monday(int64_t wall_ms, int weeks_ago)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm = { 0 };

	localtime_r(&seconds, &tm);
	tm.tm_mday -= (tm.tm_wday + 6) % 7 + 7 * weeks_ago;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

const char *clock_week(int64_t wall_ms, char out[CLOCK_TEXT_MAX])
{
	return local_text(wall_ms, "%G-W%V", out);
}
