/* SPDX-License-Identifier: MIT */
/* test_cron_expr.c - the five fields, and the nights the clocks change: every change of every time
 * zone from 2020 to 2037, against Debian's cron minute by minute. */
#include "tests/unit/unit.h"

#include <time.h>

#include "daemon/calendar/cron_expr.h"

/* 2020-01-01 and 2038-01-01, UTC */
enum { FROM_S = 1577836800, UNTIL_S = 2145916800 };

static void test_good_lines(void **state)
{
	static const struct {
		const char *text;
		uint64_t minutes;
		uint32_t hours, days, months, weekdays;
		bool follows_clock;
	} cases[] = {
		{ "0 0 1 1 0", 1, 1, 2, 2, 1, false },
		{ "5,10-12 23 31 12 7", 0x1c20, 1 << 23, 1U << 31, 1 << 12, 1, false },
		{ "*/15 0 1 1 0", 0x200040008001 & ((1ULL << 60) - 1), 1, 2, 2, 1, true },
		{ "10-30/10 */12 1 1 0", 1ULL << 10 | 1ULL << 20 | 1ULL << 30, 0x1001, 2, 2, 1,
		  true },
		{ "0 0 1 jan,Mar-MAY mon-wed", 1, 1, 2, 0x3a, 0xe, false },
		{ " 0\t0  1 1 fri-sun ", 1, 1, 2, 2, 0x61, false },
		{ "0 0 1 1 5-7", 1, 1, 2, 2, 0x61, false },
		{ "*/60 */24 */31 */12 */8", 1, 1, 2, 2, 1, true },
		{ "@daily", 1, 1, 0xfffffffe, 0x1ffe, 0x7f, false },
		{ "@Hourly", 1, 0xffffff, 0xfffffffe, 0x1ffe, 0x7f, true },
		{ "@weekly", 1, 1, 0xfffffffe, 0x1ffe, 1, false },
		{ "@monthly", 1, 1, 2, 0x1ffe, 0x7f, false },
		{ "@annually", 1, 1, 2, 2, 0x7f, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_expr expr;
		struct err err = { 0 };

		if (cron_expr_parse(cases[i].text, &expr, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(expr.minutes, cases[i].minutes);
		assert_int_equal(expr.hours, cases[i].hours);
		assert_int_equal(expr.days, cases[i].days);
		assert_int_equal(expr.months, cases[i].months);
		assert_int_equal(expr.weekdays, cases[i].weekdays);
		assert_int_equal(expr.follows_clock, cases[i].follows_clock);
	}
}

static void test_bad_lines(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "the minute is missing" },
		{ "* * * *", "the day of week is missing" },
		{ "* * * * * *", "there are more" },
		{ "60 * * * *", "minute \"60\": is out of range; 0-59" },
		{ "99999999999999999999 * * * *", "out of range" },
		{ "* 24 * * *", "hour \"24\"" },
		{ "* * 0 * *", "day of month \"0\"" },
		{ "* * * 13 *", "month \"13\"" },
		{ "* * * * 8", "day of week \"8\"" },
		{ "* * * juni *", "month \"juni\": is not understood" },
		{ "mon * * * *", "minute \"mon\"" },
		{ "5-1 * * * *", "from the smaller to the larger" },
		{ "5/15 * * * *", "a step needs a range" },
		{ "*/0 * * * *", "this step is out of range" },
		{ "*/61 * * * *", "this step is out of range" },
		{ "0 */25 * * *", "this step is out of range" },
		{ "*/x * * * *", "a step is a number" },
		{ "1, * * * *", "minute \"\": is not understood" },
		{ ",1 * * * *", "minute \"\"" },
		{ "1- * * * *", "is not understood" },
		{ "-1 * * * *", "is not understood" },
		{ "** * * * *", "is not understood" },
		{ "@reboot", "allowed are @hourly" },
		{ "@", "allowed are" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_expr expr;
		struct err err = { 0 };

		assert_int_equal(cron_expr_parse(cases[i].text, &expr, &err), -1);
		assert_int_equal(err.code, ERR_USAGE);
		assert_contains(err.text, cases[i].part);
	}
}

/* "2026-03-29 02:30" as if it were UTC. */
static int64_t at(const char *text)
{
	struct tm tm = { 0 };

	assert_non_null(strptime(text, "%Y-%m-%d %H:%M", &tm));
	return timegm(&tm);
}

static void test_next(void **state)
{
	static const struct {
		const char *zone, *expr, *after, *next; /* UTC */
	} cases[] = {
		{ "UTC", "30 4 * * *", "2026-11-21 04:29", "2026-11-21 04:30" },
		{ "UTC", "30 4 * * *", "2026-11-21 04:30", "2026-11-22 04:30" },
		{ "UTC", "0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00" },
		{ "UTC", "0 0 13 * fri", "2026-11-13 00:00", "2026-11-20 00:00" }, /* either */
		{ "UTC", "0 0 * * fri", "2026-11-13 00:00", "2026-11-20 00:00" },
		{ "UTC", "0 0 1-7 * *", "2026-11-07 00:00", "2026-12-01 00:00" },
		{ "Europe/Berlin", "30 4 * * *", "2026-07-01 00:00", "2026-07-01 02:30" },
		/* 02:30 does not exist on 29 March: right after the change, at 03:00 */
		{ "Europe/Berlin", "30 2 * * *", "2026-03-28 02:00", "2026-03-29 01:00" },
		{ "Europe/Berlin", "30 2 * * *", "2026-03-29 01:00", "2026-03-30 00:30" },
		{ "Europe/Berlin", "30 * * * *", "2026-03-29 00:30", "2026-03-29 01:30" },
		/* 02:30 comes twice on 25 October */
		{ "Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", "2026-10-25 00:30" },
		{ "Europe/Berlin", "30 2 * * *", "2026-10-25 00:30", "2026-10-26 01:30" },
		{ "Europe/Berlin", "30 * * * *", "2026-10-25 00:30", "2026-10-25 01:30" },
		{ "America/New_York", "@daily", "2026-11-21 08:00", "2026-11-22 05:00" },
		{ "Australia/Lord_Howe", "15 2 * * *", "2026-10-03 00:00", "2026-10-03 15:30" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_expr expr;
		struct zone zone;
		struct err err = { 0 };
		int64_t next;

		assert_int_equal(cron_expr_parse(cases[i].expr, &expr, &err), 0);
		assert_int_equal(zone_load(&zone, cases[i].zone, FROM_S, UNTIL_S, &err), 0);
		next = cron_expr_next(&expr, &zone, at(cases[i].after), UNTIL_S);
		if (next != at(cases[i].next))
			fail_msg("%s in %s after %s: %lld instead of %s", cases[i].expr,
				 cases[i].zone, cases[i].after, (long long)next, cases[i].next);
		zone_clear(&zone);
	}
}

static void test_never(void **state)
{
	struct cron_expr expr;
	struct zone zone = { 0 };

	(void)state;
	assert_int_equal(cron_expr_parse("0 0 30 2 *", &expr, NULL), 0);
	assert_int_equal(cron_expr_next(&expr, &zone, FROM_S, UNTIL_S), -1);
}

static void test_bad_zones(void **state)
{
	static const char *const names[] = {
		"Mars/Olympus",
		"../../etc/passwd",
		"/etc/passwd",
		"CET-1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct zone zone;
		struct err err = { 0 };

		assert_int_equal(zone_load(&zone, names[i], FROM_S, UNTIL_S, &err), -1);
		assert_contains(err.text, "there is no time zone");
	}
}

static void test_zone_leaves_ours_alone(void **state)
{
	struct zone zone;

	(void)state;
	setenv("TZ", "Asia/Tokyo", 1);
	assert_int_equal(zone_load(&zone, "Europe/Berlin", FROM_S, UNTIL_S, NULL), 0);
	assert_int_equal(zone.count, 36);
	assert_string_equal(getenv("TZ"), "Asia/Tokyo");
	zone_clear(&zone);
	assert_int_equal(zone_load(&zone, NULL, FROM_S, UNTIL_S, NULL), 0);
	assert_int_equal(zone_local_s(&zone, FROM_S), FROM_S + 9 * 3600);
	assert_true(zone_is_current(&zone, FROM_S));
	setenv("TZ", "<+0330>-3:30", 1); /* the machine is in Iran now */
	assert_false(zone_is_current(&zone, FROM_S));
	zone_clear(&zone);
	assert_int_equal(zone_load(&zone, "", FROM_S, UNTIL_S, NULL), 0);
	assert_int_equal(zone_local_s(&zone, FROM_S), FROM_S + 3 * 3600 + 1800);
	assert_true(zone_is_current(&zone, FROM_S));
	zone_clear(&zone);
	unsetenv("TZ");
}

/* --- the model: cron(8) as Debian ships it --------------------------------------------------- */

/* Fields as plain lists, written out by hand and looked up by hand. */
struct model_expr {
	bool minute[60], hour[24], weekday[7];
	bool minute_star, hour_star;
	char text[512];
};

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(random_state >> 33) % n;
}

static void add_list(FILE *text, const bool *set, unsigned count)
{
	const char *comma = "";

	for (unsigned i = 0; i < count; i++) {
		if (!set[i])
			continue;
		fprintf(text, "%s%u", comma, i);
		comma = ",";
	}
}

static void add_minutes(struct model_expr *m, FILE *text)
{
	unsigned step = 1 + random_below(30);

	m->minute_star = random_below(5) == 0;
	if (!m->minute_star) {
		add_list(text, m->minute, 60);
		return;
	}
	for (unsigned i = 0; i < 60; i++)
		m->minute[i] = i % step == 0;
	fprintf(text, "*/%u", step);
}

static void add_hours(struct model_expr *m, FILE *text)
{
	m->hour_star = random_below(5) == 0;
	if (!m->hour_star) {
		add_list(text, m->hour, 24);
		return;
	}
	memset(m->hour, true, sizeof(m->hour));
	fputs("*", text);
}

/* Few minutes, some hours: most of them near the small hours, when clocks are changed. */
static void model_invent(struct model_expr *m)
{
	unsigned hours = 1 + random_below(6), minutes = 1 + random_below(3);
	FILE *text;

	memset(m, 0, sizeof(*m));
	assert_non_null(text = fmemopen(m->text, sizeof(m->text), "w"));
	for (unsigned i = 0; i < minutes; i++)
		m->minute[random_below(60)] = true;
	for (unsigned i = 0; i < hours; i++)
		m->hour[random_below(2) ? random_below(5) : random_below(24)] = true;
	memset(m->weekday, true, sizeof(m->weekday));
	if (random_below(4) == 0)
		m->weekday[random_below(7)] = false;
	add_minutes(m, text);
	fputs(" ", text);
	add_hours(m, text);
	fputs(" * * ", text);
	add_list(text, m->weekday, 7);
	fclose(text);
}

/* cron's find_jobs: `minute` is minutes since 1970 on the wall. */
static bool model_find(const struct model_expr *m, int64_t minute, bool wild, bool fixed)
{
	time_t t = (time_t)(minute * 60);
	struct tm tm;
	bool is_wild = m->minute_star || m->hour_star;

	gmtime_r(&t, &tm);
	return m->minute[tm.tm_min] && m->hour[tm.tm_hour] && m->weekday[tm.tm_wday] &&
	       ((fixed && !is_wild) || (wild && is_wild));
}

/* One turn of cron's main loop; running and *virtual_ are minutes on the wall. */
static bool model_turn(const struct model_expr *m, int64_t running, int64_t *virtual_)
{
	int64_t difference = running - *virtual_;
	bool ran;

	if (difference == 1 || difference > 180 || difference <= -180) {
		*virtual_ = running;
		return model_find(m, running, true, true);
	}
	ran = model_find(m, running, true, false);
	if (difference <= 0)
		return ran;
	while (*virtual_ < running)
		ran |= model_find(m, ++*virtual_, false, true);
	return ran;
}

struct tally {
	long pairs, due, wrong;
	int zones, changes;
};

/* Five hours on either side of a change. */
static void compare(const struct zone *zone, int64_t change_s, struct tally *tally)
{
	struct model_expr model;
	struct cron_expr expr;
	int64_t begin = change_s - 5 * 3600, end = change_s + 5 * 3600, virtual_ = 0;
	int64_t next;

	model_invent(&model);
	assert_int_equal(cron_expr_parse(model.text, &expr, NULL), 0);
	next = cron_expr_next(&expr, zone, begin - 60, UNTIL_S);
	for (int64_t t = begin; t < end; t += 60) {
		time_t now = (time_t)t;
		struct tm tm;
		int64_t running;
		bool due;

		localtime_r(&now, &tm);
		running = (t + tm.tm_gmtoff) / 60;
		if (t == begin)
			virtual_ = running - 1;
		due = model_turn(&model, running, &virtual_);
		tally->pairs++;
		tally->due += due;
		if (cron_expr_due(&expr, zone, t) != due || (next == t) != due) {
			if (tally->wrong++ < 5)
				print_error("%s: \"%s\" at %lld: cron says %d, we %d, next %lld\n",
					    zone->name, model.text, (long long)t, due,
					    cron_expr_due(&expr, zone, t), (long long)next);
		}
		if (next == t)
			next = cron_expr_next(&expr, zone, t, UNTIL_S);
	}
}

static void compare_zone(const char *name, struct tally *tally)
{
	struct zone zone;

	if (zone_load(&zone, name, FROM_S, UNTIL_S, NULL) < 0)
		return;
	setenv("TZ", name, 1);
	tzset();
	tally->zones++;
	for (size_t i = 0; i < zone.count; i++) {
		int64_t jump_s = zone.changes[i].after_s - zone.changes[i].before_s;
		int tries = llabs(jump_s) > 3600 ? 30 : 2; /* rare ones deserve a closer look */

		tally->changes++;
		for (int k = 0; k < tries; k++)
			compare(&zone, zone.changes[i].at_s, tally);
	}
	unsetenv("TZ");
	zone_clear(&zone);
}

static void test_every_change_of_every_zone(void **state)
{
	static const char list[] = "/usr/share/zoneinfo/tzdata.zi";
	FILE *f = fopen(list, "r");
	struct tally tally = { 0 };
	char line[512], name[64];

	(void)state;
	random_state = 20260329;
	if (f == NULL)
		fail_msg("%s is missing: install tzdata", list);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Z %63s", name) == 1)
			compare_zone(name, &tally);
	fclose(f);
	print_message("%d zones, %d changes, %ld pairs, %ld due, %ld wrong\n", tally.zones,
		      tally.changes, tally.pairs, tally.due, tally.wrong);
	assert_true(tally.pairs >= 1000000);
	assert_true(tally.due > 10000);
	assert_int_equal(tally.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_bad_zones),
		cmocka_unit_test(test_zone_leaves_ours_alone),
		cmocka_unit_test(test_every_change_of_every_zone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
