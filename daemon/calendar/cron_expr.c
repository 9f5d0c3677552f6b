/* SPDX-License-Identifier: MIT */
/* cron_expr.c - reads five fields as sets of bits, and finds the next minute in them. */
#include "daemon/calendar/cron_expr.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

/* --- the text -------------------------------------------------------------------------------- */

static const char *const month_names[] = {
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL,
};
static const char *const weekday_names[] = {
	"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL,
};

enum field { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELD_COUNT };

static const struct {
	const char *title;
	int least, most;
	const char *const *names; /* from `least` on; NULL = numbers only */
} fields[FIELD_COUNT] = {
	[MINUTE] = { "minute", 0, 59, NULL },
	[HOUR] = { "hour", 0, 23, NULL },
	[DAY] = { "day of month", 1, 31, NULL },
	[MONTH] = { "month", 1, 12, month_names },
	[WEEKDAY] = { "day of week", 0, 7, weekday_names },
};

static const struct {
	const char *name, *expr;
} nicknames[] = {
	{ "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
	{ "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
	{ "@annually", "0 0 1 1 *" },
};

/* One list item, cut out of the expression: "*", "5", "mon", "1-5", "9-17/2". */
struct item {
	enum field field;
	const char *at, *end;
};

static int refuse(const struct item *item, struct err *err, const char *what)
{
	return err_set(err, ERR_USAGE,
		       "%s \"%.*s\": %s; %d-%d%s, lists a,b, ranges a-b and steps "
		       "a-b/n or */n are allowed",
		       fields[item->field].title, (int)(item->end - item->at), item->at, what,
		       fields[item->field].least, fields[item->field].most,
		       fields[item->field].names ? " or names" : "");
}

/* A number or a name at *p; moves *p past it. -1: neither. */
static int read_value(enum field field, const char **p, const char *end)
{
	size_t len = 0;

	if (isdigit((unsigned char)**p)) {
		int value = 0;

		while (*p < end && isdigit((unsigned char)**p) && value < 1000)
			value = value * 10 + (*(*p)++ - '0');
		return value;
	}
	while (*p + len < end && isalpha((unsigned char)(*p)[len]))
		len++;
	for (int i = 0; fields[field].names && fields[field].names[i]; i++) {
		if (len == 3 && strncasecmp(*p, fields[field].names[i], 3) == 0) {
			*p += len;
			return fields[field].least + i;
		}
	}
	return -1;
}

/* "/n" or nothing; -1 with err. */
static int read_step(const struct item *item, const char *p, bool is_range, struct err *err)
{
	int step;

	if (p == item->end)
		return 1;
	if (*p++ != '/')
		return refuse(item, err, "is not understood");
	if (!is_range)
		return refuse(item, err, "a step needs a range in front of it");
	if (p == item->end || !isdigit((unsigned char)*p))
		return refuse(item, err, "a step is a number");
	step = read_value(MINUTE, &p, item->end);
	/* as many as there are: every 60th minute is once an hour, as it is meant */
	if (p != item->end || step < 1 ||
	    step > fields[item->field].most - fields[item->field].least + 1)
		return refuse(item, err, "this step is out of range");
	return step;
}

static int read_item(const struct item *item, uint64_t *bits, struct err *err)
{
	int low = fields[item->field].least, high = fields[item->field].most, step;
	bool is_range = true;
	const char *p = item->at;

	if (p < item->end && *p == '*') {
		p++;
	} else {
		if ((low = high = read_value(item->field, &p, item->end)) < 0)
			return refuse(item, err, "is not understood");
		is_range = p < item->end && *p == '-';
		if (is_range && (p++, (high = read_value(item->field, &p, item->end)) < 0))
			return refuse(item, err, "is not understood");
		if (item->field == WEEKDAY && high == 0 && low > 0)
			high = 7; /* fri-sun */
	}
	if (low < fields[item->field].least || high > fields[item->field].most)
		return refuse(item, err, "is out of range");
	if (low > high)
		return refuse(item, err, "a range goes from the smaller to the larger");
	if ((step = read_step(item, p, is_range, err)) < 0)
		return -1;
	for (int i = low; i <= high; i += step)
		*bits |= UINT64_C(1) << i;
	return 0;
}

static int read_field(enum field field, const char *text, size_t len, uint64_t *bits,
		      struct err *err)
{
	const char *end = text + len;

	for (const char *at = text;; at++) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		struct item item = { field, at, comma ? comma : end };

		if (read_item(&item, bits, err) < 0)
			return -1;
		if (comma == NULL)
			return 0;
		at = comma;
	}
}

static const char *expand(const char *text, struct err *err)
{
	if (text[0] != '@')
		return text;
	for (size_t i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++)
		if (strcasecmp(text, nicknames[i].name) == 0)
			return nicknames[i].expr;
	err_set(err, ERR_USAGE,
		"\"%.40s\": allowed are @hourly, @daily, @midnight, @weekly, @monthly, "
		"@yearly and @annually",
		text);
	return NULL;
}

int cron_expr_parse(const char *text, struct cron_expr *out, struct err *err)
{
	uint64_t bits[FIELD_COUNT] = { 0 };
	bool star[FIELD_COUNT];
	const char *p = expand(text, err);

	*out = (struct cron_expr){ 0 };
	if (p == NULL)
		return -1;
	for (int f = 0; f < FIELD_COUNT; f++) {
		size_t len = strcspn(p += strspn(p, " \t"), " \t");

		if (len == 0)
			return err_set(err, ERR_USAGE,
				       "\"%.60s\": the %s is missing; five fields are "
				       "wanted: minute hour day month weekday",
				       text, fields[f].title);
		star[f] = *p == '*';
		if (read_field((enum field)f, p, len, &bits[f], err) < 0)
			return -1;
		p += len;
	}
	if (p[strspn(p, " \t")] != '\0')
		return err_set(err, ERR_USAGE, "\"%.60s\": five fields are wanted, there are more",
			       text);
	out->minutes = bits[MINUTE];
	out->hours = (uint32_t)bits[HOUR];
	out->days = (uint32_t)bits[DAY];
	out->months = (uint32_t)bits[MONTH];
	out->weekdays = (uint32_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f);
	out->any_day = star[DAY];
	out->any_weekday = star[WEEKDAY];
	out->follows_clock = star[MINUTE] || star[HOUR];
	return 0;
}

/* --- the clock ------------------------------------------------------------------------------- */

/* What is shown on the wall, taken apart. */
static struct tm wall(int64_t local_s)
{
	time_t t = (time_t)local_s;
	struct tm tm = { 0 };

	gmtime_r(&t, &tm);
	return tm;
}

static bool day_matches(const struct cron_expr *expr, const struct tm *tm)
{
	bool day = expr->days >> tm->tm_mday & 1, weekday = expr->weekdays >> tm->tm_wday & 1;

	if (!(expr->months >> (tm->tm_mon + 1) & 1))
		return false;
	return expr->any_day || expr->any_weekday ? day && weekday : day || weekday;
}

static bool matches(const struct cron_expr *expr, int64_t local_s)
{
	struct tm tm = wall(local_s);

	return (expr->minutes >> tm.tm_min & 1) && (expr->hours >> tm.tm_hour & 1) &&
	       day_matches(expr, &tm);
}

/* Debian's cron takes a larger jump for a clock that was set, and simply goes on from there. */
static bool is_small(int64_t jump_s)
{
	return jump_s < 3 * HOUR_S && jump_s >= -3 * HOUR_S;
}

/* Does [from_s, until_s) on the wall hold a minute that matches? */
static bool matches_within(const struct cron_expr *expr, int64_t from_s, int64_t until_s)
{
	for (int64_t t = from_s; t < until_s; t += MINUTE_S)
		if (matches(expr, t))
			return true;
	return false;
}

bool cron_expr_is_never(const struct cron_expr *expr)
{
	static const int longest[13] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	if (!expr->any_day && !expr->any_weekday)
		return false; /* the weekday alone is enough */
	for (int month = 1; month <= 12; month++)
		for (int day = 1; day <= longest[month]; day++)
			if ((expr->months >> month & 1) && (expr->days >> day & 1))
				return false;
	return true;
}

bool cron_expr_due(const struct cron_expr *expr, const struct zone *zone, int64_t minute_s)
{
	const struct zone_change *change = zone_last_change(zone, minute_s);
	int64_t local_s = minute_s + (change ? change->after_s : zone->offset_s);
	int64_t jump_s = change ? change->after_s - change->before_s : 0;

	if (expr->follows_clock || change == NULL || !is_small(jump_s))
		return matches(expr, local_s);
	if (local_s < change->at_s + change->before_s)
		return false; /* these minutes have been before */
	if (minute_s == change->at_s && jump_s > 0 &&
	    matches_within(expr, local_s - jump_s, local_s))
		return true; /* these were left out */
	return matches(expr, local_s);
}

/* The next minute worth a look: whole days and hours that cannot match are passed over. */
static int64_t skip(const struct cron_expr *expr, int64_t local_s)
{
	struct tm tm = wall(local_s);

	if (!day_matches(expr, &tm))
		return local_s - local_s % DAY_S + DAY_S;
	if (!(expr->hours >> tm.tm_hour & 1))
		return local_s - local_s % HOUR_S + HOUR_S;
	return local_s + MINUTE_S;
}

int64_t cron_expr_next(const struct cron_expr *expr, const struct zone *zone, int64_t after_s,
		       int64_t until_s)
{
	int64_t t = after_s - after_s % MINUTE_S + MINUTE_S;

	while (t < until_s) {
		const struct zone_change *change = zone_next_change(zone, t);
		int64_t local_s = zone_local_s(zone, t);

		if (cron_expr_due(expr, zone, t))
			return t;
		t += skip(expr, local_s) - local_s;
		if (change && t > change->at_s)
			t = change->at_s;
	}
	return -1;
}
