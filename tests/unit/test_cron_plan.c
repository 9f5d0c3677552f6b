/* SPDX-License-Identifier: MIT */
/* test_cron_plan.c - which ticks are started, and which are passed over. Times are "day
 * hour:minute" of March 2026, UTC. */
#include "tests/unit/unit.h"

#include <time.h>

#include "daemon/calendar/cron_plan.h"

static int64_t at(const char *text)
{
	struct tm tm = { .tm_year = 126, .tm_mon = 2 };

	assert_non_null(strptime(text, "%d %H:%M", &tm));
	return timegm(&tm);
}

/* clang-format off */
static const struct {
	const char *what, *expr;
	enum cron_catch_up catch_up;
	const char *seen, *now;
	int jump_minutes;
	const char *ticks[5];
	int passed_over;
} cases[] = {
	{ "on time", "30 4 * * *", CATCH_UP_NONE, "02 04:29", "02 04:30", 0, { "02 04:30" }, 0 },
	{ "not yet", "30 4 * * *", CATCH_UP_ALL, "02 04:28", "02 04:29", 0, { NULL }, 0 },
	{ "seen already", "30 4 * * *", CATCH_UP_ALL, "02 04:30", "02 04:31", 0, { NULL }, 0 },
	{ "a little late", "30 4 * * *", CATCH_UP_NONE, "02 04:29", "02 04:34", 0, { "02 04:30" }, 0 },
	{ "late, every minute", "* * * * *", CATCH_UP_ONE, "02 04:29", "02 04:32", 0,
	  { "02 04:30", "02 04:31", "02 04:32" }, 0 },
	{ "down for a day, none", "30 4 * * *", CATCH_UP_NONE, "02 00:00", "03 00:00", 0, { NULL }, 1 },
	{ "down for a day, one", "30 4 * * *", CATCH_UP_ONE, "02 00:00", "03 00:00", 0,
	  { "02 04:30" }, 0 },
	{ "down for three days, one", "30 4 * * *", CATCH_UP_ONE, "02 00:00", "05 00:00", 0,
	  { "04 04:30" }, 2 },
	{ "down for three days, all", "30 4 * * *", CATCH_UP_ALL, "02 00:00", "05 00:00", 0,
	  { "02 04:30", "03 04:30", "04 04:30" }, 0 },
	{ "down, back just on time: one stands for all", "30 4 * * *", CATCH_UP_ONE, "02 00:00",
	  "04 04:30", 0, { "04 04:30" }, 2 },
	{ "set forward over a fixed time", "30 4 * * *", CATCH_UP_NONE, "02 04:00", "02 06:01", 120,
	  { "02 04:30" }, 0 },
	{ "set forward over two fixed times", "10,30 4 * * *", CATCH_UP_ALL, "02 04:00", "02 06:01",
	  120, { "02 04:30" }, 1 },
	{ "set forward: what follows the clock does", "0 * * * *", CATCH_UP_ALL, "02 04:01",
	  "02 06:02", 120, { NULL }, 2 },
	{ "set forward to the very minute", "0 * * * *", CATCH_UP_NONE, "02 04:01", "02 06:00", 118,
	  { "02 06:00" }, 1 },
	{ "set forward by half a day", "30 4 * * *", CATCH_UP_ALL, "02 04:00", "02 16:01", 720,
	  { NULL }, 1 },
	{ "asleep, then set forward: only the sleep is caught up", "0 * * * *", CATCH_UP_ALL,
	  "02 01:30", "02 06:10", 120, { "02 02:00", "02 03:00", "02 04:00" }, 2 },
	{ "set back", "30 4 * * *", CATCH_UP_ALL, "02 04:31", "02 04:30", -1, { NULL }, 0 },
	{ "set back by a month", "30 4 * * *", CATCH_UP_ALL, "30 04:31", "02 04:30", -40000, { NULL },
	  0 },
};
/* clang-format on */

static void test_plan(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cron_span span = {
			at(cases[i].seen),
			at(cases[i].now),
			cases[i].jump_minutes * 60,
		};
		struct zone utc = { 0 };
		struct cron_expr expr;
		struct cron_plan plan;
		size_t n = 0;

		assert_int_equal(cron_expr_parse(cases[i].expr, &expr, NULL), 0);
		plan = cron_plan(&expr, &utc, cases[i].catch_up, &span);
		for (; n < COUNT(cases[i].ticks) && cases[i].ticks[n]; n++)
			if (n >= plan.count || plan.ticks[n] != at(cases[i].ticks[n]))
				fail_msg("%s: tick %zu is not %s", cases[i].what, n,
					 cases[i].ticks[n]);
		if (plan.count != n || plan.passed_over != cases[i].passed_over)
			fail_msg("%s: %zu ticks, %lld passed over", cases[i].what, plan.count,
				 (long long)plan.passed_over);
	}
}

static void test_what_is_remembered(void **state)
{
	struct cron_span on = { at("02 04:29"), at("02 04:30"), 0 };
	struct cron_span back = { at("02 05:31"), at("02 04:30"), -3660 };
	struct cron_span wrong = { at("30 05:31"), at("02 04:30"), -3600 };
	struct zone utc = { 0 };
	struct cron_expr expr;

	(void)state;
	assert_int_equal(cron_expr_parse("* * * * *", &expr, NULL), 0);
	assert_int_equal(cron_plan(&expr, &utc, CATCH_UP_ONE, &on).seen_s, on.now_s);
	assert_int_equal(cron_plan(&expr, &utc, CATCH_UP_ONE, &back).seen_s, back.seen_s);
	assert_int_equal(cron_plan(&expr, &utc, CATCH_UP_ONE, &wrong).seen_s, wrong.now_s);
}

static void test_away_for_long(void **state)
{
	struct cron_span span = { at("02 04:30"), at("20 04:30"), 0 };
	struct zone utc = { 0 };
	struct cron_expr expr;
	struct cron_plan plan;

	(void)state;
	assert_int_equal(cron_expr_parse("@hourly", &expr, NULL), 0);
	plan = cron_plan(&expr, &utc, CATCH_UP_ALL, &span);
	assert_int_equal(plan.count, CRON_MAX_TICKS);
	assert_int_equal(plan.ticks[CRON_MAX_TICKS - 1], at("20 04:00"));
	assert_int_equal(plan.passed_over, 18 * 24 - CRON_MAX_TICKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_what_is_remembered),
		cmocka_unit_test(test_away_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
