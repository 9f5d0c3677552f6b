/* SPDX-License-Identifier: MIT */
/* sbatch_times.c - durations and moments, as sbatch writes them. */
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"
#include "slurm/batch/sbatch_values.h"

int sbatch_duration(const char *text, int64_t *out_s, struct err *err)
{
	static const char what[] = "must be a time like \"90\" (minutes), \"M:S\", \"H:M:S\", "
				   "\"D-H\", \"D-H:M\", \"D-H:M:S\" or \"UNLIMITED\"";
	int64_t part[3] = { 0 }, days = 0;
	const char *at = text;
	bool with_days = strchr(text, '-') != NULL;
	int count = 0;

	if (strcmp(text, "-1") == 0 || strcasecmp(text, "UNLIMITED") == 0 ||
	    strcasecmp(text, "INFINITE") == 0) {
		*out_s = SBATCH_UNLIMITED;
		return 0;
	}
	if (!isdigit((unsigned char)*at))
		return err_set(err, ERR_USAGE, "\"%.40s\": %s", text, what);
	if (with_days) {
		days = sbatch_digits(&at);
		if (*at++ != '-')
			return err_set(err, ERR_USAGE, "\"%.40s\": %s", text, what);
	}
	do
		part[count++] = sbatch_digits(&at);
	while (*at == ':' && count < 3 && at++);
	if (*at || (with_days && !isdigit((unsigned char)at[-1])))
		return err_set(err, ERR_USAGE, "\"%.40s\": %s", text, what);
	if (with_days || count == 3)
		*out_s = days * 86400 + part[0] * 3600 + part[1] * 60 + part[2];
	else
		*out_s = part[0] * 60 + part[1];
	return *out_s > INT_MAX ? err_set(err, ERR_USAGE, "\"%.40s\": is too long", text) : 0;
}

/* -1: not said */
struct moment {
	int hour, minute, second, month, day, year;
};

static void take_day(struct moment *m, time_t when)
{
	struct tm tm;

	localtime_r(&when, &tm);
	m->month = tm.tm_mon;
	m->day = tm.tm_mday;
	m->year = tm.tm_year;
}

static void take_instant(struct moment *m, time_t when)
{
	struct tm tm;

	take_day(m, when);
	localtime_r(&when, &tm);
	m->hour = tm.tm_hour;
	m->minute = tm.tm_min;
	m->second = tm.tm_sec;
}

static bool skip_word(const char **at, const char *word)
{
	size_t len = strlen(word);

	if (strncasecmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

/* What stands after "now": "", "+60", "-5minutes", "+2 days". */
static bool take_offset(const char **at, struct moment *m, time_t now)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = {
		{ "seconds", 1 },    { "second", 1 },    { "minutes", 60 }, { "minute", 60 },
		{ "hours", 3600 },   { "hour", 3600 },   { "days", 86400 }, { "day", 86400 },
		{ "weeks", 604800 }, { "week", 604800 },
	};
	int64_t count = 0, sign = 1;
	bool has_digits = false;

	while (isblank((unsigned char)**at))
		(*at)++;
	if (**at == '+' || **at == '-') {
		sign = *(*at)++ == '-' ? -1 : 1;
		while (isspace((unsigned char)**at))
			(*at)++;
		has_digits = isdigit((unsigned char)**at);
		count = sbatch_digits(at);
		while (isspace((unsigned char)**at))
			(*at)++;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			if (skip_word(at, units[i].name)) {
				count *= units[i].seconds;
				break;
			}
		}
		if (!has_digits)
			return false;
	}
	take_instant(m, now + (time_t)(sign * count));
	return true;
}

/* From one to `most` digits. */
static bool take_digits(const char **at, int most, int *out)
{
	int count = 0;

	for (*out = 0; count < most && isdigit((unsigned char)**at); count++)
		*out = *out * 10 + (*(*at)++ - '0');
	return count > 0;
}

static bool take_mark(const char **at, const char *marks)
{
	bool there = **at && strchr(marks, **at);

	*at += there;
	return there;
}

/* "H:MM", "HH:MM[:SS]", then perhaps "am" or "pm". */
static bool take_clock(const char **at, struct moment *m)
{
	int hour, minute, second = 0;

	if (!take_digits(at, 2, &hour) || !take_mark(at, ":") || !take_digits(at, 2, &minute))
		return false;
	if (take_mark(at, ":") && !take_digits(at, 2, &second))
		return false;
	while (isspace((unsigned char)**at))
		(*at)++;
	if (skip_word(at, "pm"))
		hour += hour == 12 ? 0 : 12;
	else if (skip_word(at, "am") && hour == 12)
		hour = 0;
	m->hour = hour;
	m->minute = minute;
	m->second = second;
	return hour < 24 && minute < 60 && second < 60;
}

/* "YYYY-MM-DD", "MMDDYY", "MM/DD/YY", "MM.DD", … */
static bool take_date(const char **at, struct moment *m)
{
	int year = -1, month, day;

	if (text_digits(*at) == 4 && (*at)[4] == '-') {
		if (!take_digits(at, 4, &year) || !take_mark(at, "-") ||
		    !take_digits(at, 2, &month) || !take_mark(at, "-") || !take_digits(at, 2, &day))
			return false;
		year -= 1900;
	} else {
		if (!take_digits(at, 2, &month))
			return false;
		take_mark(at, "/.");
		if (!take_digits(at, 2, &day))
			return false;
		take_mark(at, "/.");
		if (take_digits(at, 2, &year))
			year += 100;
		else
			year = -1;
	}
	m->month = month - 1;
	m->day = day;
	m->year = year;
	return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool take_piece(const char **at, struct moment *m, time_t now)
{
	static const struct {
		const char *word;
		int hour;
	} hours[] = {
		{ "midnight", 0 },
		{ "noon", 12 },
		{ "fika", 15 },
		{ "teatime", 16 },
	};

	for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++) {
		if (skip_word(at, hours[i].word)) {
			m->hour = hours[i].hour;
			m->minute = m->second = 0;
			return true;
		}
	}
	if (skip_word(at, "today")) {
		take_day(m, now);
		return true;
	}
	if (skip_word(at, "tomorrow")) {
		take_day(m, now + 86400);
		return true;
	}
	if (skip_word(at, "now"))
		return take_offset(at, m, now);
	if (!isdigit((unsigned char)**at))
		return false;
	if ((*at)[1] == ':' || ((*at)[1] && (*at)[2] == ':'))
		return take_clock(at, m);
	return take_date(at, m);
}

/* What was not said: the soonest. */
static void fill_in(struct moment *m, time_t now)
{
	struct tm tm;
	int today;

	localtime_r(&now, &tm);
	today = tm.tm_hour * 60 + tm.tm_min;
	if (m->hour < 0)
		m->hour = m->minute = 0;
	if (m->month < 0)
		take_day(m, m->hour * 60 + m->minute > today ? now : now + 86400);
	if (m->year < 0) {
		bool later = m->month != tm.tm_mon  ? m->month > tm.tm_mon
			     : m->day != tm.tm_mday ? m->day > tm.tm_mday
						    : m->hour * 60 + m->minute > today;

		m->year = tm.tm_year + !later;
	}
}

int sbatch_moment(const char *text, time_t now, time_t *out, struct err *err)
{
	struct moment m = { -1, -1, 0, -1, -1, -1 };
	const char *at = text;
	struct tm tm = { .tm_isdst = -1 };
	bool good = true;

	if (strncasecmp(text, "uts", 3) == 0) {
		int64_t when = 0;

		if (sbatch_number(text + 3, 1000000, INT64_MAX / 2, &when, err) < 0)
			return -1;
		*out = (time_t)when;
		return 0;
	}
	while (good && *at) {
		if (isblank((unsigned char)*at) || *at == '-' || *at == 'T')
			at++;
		else
			good = take_piece(&at, &m, now);
	}
	if (!good || (m.hour < 0 && m.month < 0))
		return err_set(
			err, ERR_USAGE,
			"\"%.40s\": must be a time like \"16:00\", \"tomorrow\", \"now+1hour\" "
			"or \"2030-01-20T12:34:00\"",
			text);
	fill_in(&m, now);
	tm.tm_sec = m.second;
	tm.tm_min = m.minute;
	tm.tm_hour = m.hour;
	tm.tm_mday = m.day;
	tm.tm_mon = m.month;
	tm.tm_year = m.year;
	*out = mktime(&tm);
	return *out < 0 ? err_set(err, ERR_USAGE, "\"%.40s\": there is no such time", text) : 0;
}
