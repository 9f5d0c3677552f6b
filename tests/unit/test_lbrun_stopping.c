/* SPDX-License-Identifier: MIT */
/* test_lbrun_stopping.c - who is asked, SIGTERMed and killed, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/lbrun/end/stopping.h"

enum { NOW = 1000 };

/* Takes all that is due at this time: "ATK" in the order of the steps. */
static const char *due(struct stopping *s, int64_t now_ms)
{
	static char text[8];
	size_t n = 0;
	enum stop_step step;

	while ((step = stopping_due(s, now_ms)) != STEP_NONE) {
		stopping_took(s, step);
		text[n++] = " ATK"[step];
	}
	text[n] = '\0';
	return text;
}

static void test_nothing_by_itself(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	assert_string_equal(due(&s, INT64_MAX - 1), "");
	assert_true(stopping_next_ms(&s) == INT64_MAX);
}

static void test_polite(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_ORDERED, NOW, 9000, true);
	assert_string_equal(due(&s, NOW), "A");
	assert_int_equal(stopping_next_ms(&s), NOW + 3000);
	assert_string_equal(due(&s, NOW + 2999), "");
	assert_string_equal(due(&s, NOW + 3000), "T");
	assert_string_equal(due(&s, NOW + 8999), "");
	assert_string_equal(due(&s, NOW + 9000), "K");
	assert_string_equal(due(&s, NOW + 90000), "");
}

/* A kill after a stop: the shorter grace counts from now; what comes again changes nothing. */
static void test_more_urgent(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_ORDERED, NOW, 300000, true);
	assert_string_equal(due(&s, NOW), "A");
	stopping_request(&s, STOP_ORDERED, NOW + 1000, 300000, false);
	assert_string_equal(due(&s, NOW + 1000), "");
	stopping_request(&s, STOP_ORDERED, NOW + 2000, 9000, true);
	assert_string_equal(due(&s, NOW + 4999), "");
	assert_string_equal(due(&s, NOW + 5000), "T");
	assert_string_equal(due(&s, NOW + 11000), "K");
}

static void test_deaf(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_ORDERED, NOW, 9000, false);
	assert_string_equal(due(&s, NOW), "AT");
	assert_string_equal(due(&s, NOW + 9000), "K");
}

static void test_repeating_delays_nothing(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_ORDERED, NOW, 9000, true);
	stopping_request(&s, STOP_ORDERED, NOW + 8000, 9000, true);
	stopping_request(&s, STOP_SIGNALLED, NOW + 8000, 9000, true);
	assert_string_equal(due(&s, NOW + 9000), "K");
	assert_int_equal(s.why, STOP_ORDERED);
}

static void test_now(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_ORDERED, NOW, 9000, true);
	stopping_request_now(&s, STOP_SIGNALLED, NOW + 1);
	assert_string_equal(due(&s, NOW + 1), "K");
	assert_int_equal(s.why, STOP_ORDERED);
}

static void test_warning_then_limit(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_WARNED, NOW, 9000, true);
	assert_string_equal(due(&s, NOW), "A");
	assert_string_equal(due(&s, NOW + WARN_TO_TERM_MS - 1), "");
	assert_string_equal(due(&s, NOW + WARN_TO_TERM_MS), "T");
	assert_true(stopping_next_ms(&s) == INT64_MAX);
	stopping_request(&s, STOP_SIGNALLED, NOW + 200000, 9000, true);
	assert_int_equal(s.why, STOP_SIGNALLED);
	assert_string_equal(due(&s, NOW + 209000), "K");
	stopping_request(&s, STOP_ORDERED, NOW + 209000, 9000, true);
	assert_int_equal(s.why, STOP_ORDERED);
}

static void test_before_the_scheduler_kills_us(void **state)
{
	struct stopping s;

	(void)state;
	stopping_init(&s, 0);
	stopping_request(&s, STOP_SIGNALLED, NOW, 3600 * 1000, false);
	assert_string_equal(due(&s, NOW + SCHEDULER_GRACE_MS), "K");
	stopping_init(&s, 0);
	stopping_request(&s, STOP_ORDERED, NOW, 3600 * 1000, false);
	assert_string_equal(due(&s, NOW + SCHEDULER_GRACE_MS), "AT");
}

/* A site that waits less than usual before it kills, and one that waits longer. */
static void test_kill_wait(void **state)
{
	static const struct {
		int64_t kill_wait_ms, kill_ms;
	} rows[] = { { 0, SCHEDULER_GRACE_MS },
		     { 30000, SCHEDULER_GRACE_MS },
		     { 6000, 5000 },
		     { 600000, 300000 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stopping s;

		stopping_init(&s, rows[i].kill_wait_ms);
		stopping_request(&s, STOP_SIGNALLED, NOW, 300000, true);
		assert_int_equal(s.due_ms[STEP_KILL], NOW + rows[i].kill_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_by_itself),
		cmocka_unit_test(test_polite),
		cmocka_unit_test(test_more_urgent),
		cmocka_unit_test(test_deaf),
		cmocka_unit_test(test_repeating_delays_nothing),
		cmocka_unit_test(test_now),
		cmocka_unit_test(test_warning_then_limit),
		cmocka_unit_test(test_before_the_scheduler_kills_us),
		cmocka_unit_test(test_kill_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
