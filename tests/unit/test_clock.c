/* SPDX-License-Identifier: MIT */
/* test_clock.c - times as text, and back. */
#include "tests/unit/unit.h"

#include <time.h>

#include "common/base/clock.h"

static void test_durations(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ -1, "-" },
		{ 0, "0s" },
		{ 12999, "12s" },
		{ 60000, "1m00s" },
		{ 245000, "4m05s" },
		{ 3599999, "59m59s" },
		{ 3600000, "1h00m" },
		{ 11520000, "3h12m" },
		{ 86400000, "1d00h" },
		{ 93600000, "1d02h" },
		{ INT64_MAX, "106751991167d07h" },
	};
	char out[CLOCK_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(duration_text(cases[i].ms, out), cases[i].text);
}

static void test_wall_text(void **state)
{
	char out[CLOCK_TEXT_MAX];

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_string_equal(clock_text(1795183402000, out), "2026-11-20 14:03:22");
	assert_string_equal(clock_text(0, out), "-");
	assert_string_equal(clock_text(-5, out), "-");
	assert_true(strlen(clock_text(INT64_MAX, out)) > 0);
}

static void test_zone(void **state)
{
	char out[CLOCK_TEXT_MAX];

	(void)state;
	setenv("TZ", "XXX-5:30", 1);
	tzset();
	assert_string_equal(clock_text_zoned(1795183402000, out), "2026-11-20 19:33:22 +0530");
	assert_string_equal(clock_text_zoned(0, out), "-");
}

/* Friday, 2026-11-20; and weeks of another length where clocks are set. */
static void test_weeks(void **state)
{
	int64_t friday_ms = 1795183402000, monday_ms = 1794787200000, hour_ms = 3600000;
	int64_t wednesday_ms = 1793185200000; /* 2026-10-28 12:00 there: winter since Sunday */
	char out[CLOCK_TEXT_MAX];

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_true(clock_monday(friday_ms, 0) == monday_ms);
	assert_true(clock_monday(monday_ms, 0) == monday_ms);
	assert_true(clock_monday(monday_ms - 1, 0) == monday_ms - 168 * hour_ms);
	assert_string_equal(clock_week(friday_ms, out), "2026-W47");
	assert_string_equal(clock_week(clock_monday(1798848000000, 0), out), "2026-W53");
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_true(clock_monday(wednesday_ms, 0) == wednesday_ms - (2 * 24 + 12) * hour_ms);
	assert_true(clock_monday(wednesday_ms, 0) - clock_monday(wednesday_ms, 1) == 169 * hour_ms);
}

static void test_clocks_run(void **state)
{
	int64_t a = clock_mono_ms();

	(void)state;
	assert_true(clock_mono_ms() >= a);
	assert_true(clock_wall_ms() > 1700000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),  cmocka_unit_test(test_wall_text),
		cmocka_unit_test(test_zone),       cmocka_unit_test(test_weeks),
		cmocka_unit_test(test_clocks_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
