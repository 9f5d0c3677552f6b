/* SPDX-License-Identifier: MIT */
/* test_warnings.c - how long a training still takes, and why a run does not run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/engine/decide/warnings.h"

enum { SECOND = 1000, HOUR = 3600 * SECOND };

static void pace_is_that_of_one_launch(void **state)
{
	struct pace p = { 0 };

	(void)state;
	for (int64_t step = 101; step <= 150; step++)
		pace_note(&p, 1, step, step * 2 * SECOND);
	/* 2 s a step, 850 to go */
	assert_int_equal(pace_left_ms(&p, 1000, HOUR), 1700 * SECOND);
	assert_int_equal(pace_left_ms(&p, 150, HOUR), 0);
	assert_int_equal(pace_left_ms(&p, 120, HOUR), 0);
	/* more is told of the last step, by another rank */
	pace_note(&p, 1, 150, 301 * SECOND);
	assert_int_equal(pace_left_ms(&p, 1000, HOUR), 1700 * SECOND);
	/* a new launch goes back, and is slower: the time in between is nobody's */
	pace_note(&p, 2, 101, 10 * HOUR);
	assert_int_equal(pace_left_ms(&p, 1000, HOUR), -1);
	for (int64_t step = 102; step <= 150; step++)
		pace_note(&p, 2, step, 10 * HOUR + (step - 101) * 3 * SECOND);
	assert_int_equal(pace_left_ms(&p, 1000, HOUR), 2550 * SECOND);
	/* a trainer that counts anew */
	pace_note(&p, 2, 1, 11 * HOUR);
	assert_int_equal(pace_left_ms(&p, 1000, HOUR), -1);
}

static void a_pace_is_not_believed_at_once(void **state)
{
	static const struct {
		int64_t steps, ms, limit_ms, left_ms;
	} rows[] = {
		/* 1,000 steps to go */
		{ 9, HOUR, HOUR, -1 }, /* too few steps */
		{ 10, 36 * SECOND, HOUR, 3600 * SECOND },
		{ 10, 35 * SECOND, HOUR, -1 }, /* less than a hundredth of the limit */
		{ 1000, 36 * SECOND, HOUR, 36 * SECOND },
		{ 10, 0, 0, -1 }, /* no time at all */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pace p = { 1, 0, 5, rows[i].steps, 5 + rows[i].ms };

		if (pace_left_ms(&p, rows[i].steps + 1000, rows[i].limit_ms) != rows[i].left_ms)
			fail_msg("row %zu", i);
	}
}

static void every_absence_has_its_reason(void **state)
{
	static const struct job_status pending = { .ref = { .job_id = 7 },
						   .phase = JOB_PENDING,
						   .state = "PENDING",
						   .reason = "Resources" },
				       silent = { .ref = { .job_id = 7 },
						  .phase = JOB_PENDING,
						  .state = "PENDING" },
				       held = { .ref = { .job_id = 7 },
						.phase = JOB_HELD,
						.reason = "JobHeldAdmin" };
	static const struct {
		struct absence absence;
		const char *text;
	} rows[] = {
		{ { RUN_QUEUED, &pending, "", "", "" }, "its job 7 is PENDING: Resources" },
		{ { RUN_QUEUED, &silent, "", "", "" }, "its job 7 is PENDING: no reason is given" },
		{ { RUN_QUEUED, &held, "", "", "" }, "somebody holds its job 7 (JobHeldAdmin)" },
		{ { RUN_QUEUED, &pending, "Socket timed out", "", "" },
		  "the scheduler does not answer: Socket timed out" },
		{ { RUN_QUEUED, NULL, "", "", "" }, "the scheduler does not show a job of it" },
		{ { RUN_SUBMITTING, NULL, "", "Invalid account", "" },
		  "it cannot be submitted: Invalid account" },
		{ { RUN_BACKOFF, NULL, "", "", "node n3 failed" },
		  "it waits before its next attempt; last: node n3 failed" },
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		absence_explain(&rows[i].absence, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace_is_that_of_one_launch),
		cmocka_unit_test(a_pace_is_not_believed_at_once),
		cmocka_unit_test(every_absence_has_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
