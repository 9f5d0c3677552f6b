/* SPDX-License-Identifier: MIT */
/* test_cancelled.c - which tasks of an array are told to be cancelled, poll by poll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/job_result.h"
#include "slurm/pipe/cancelled.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static void note(uint32_t state, const char *tasks, int64_t submit_time)
{
	struct wire_row row = {
		.token = TOKEN,
		.job_id = 7,
		.submit_time = submit_time,
		.state = state,
		.nodes = "",
	};

	cancelled_note(&row, tasks);
}

/* As JSON; owned. */
static char *told(void)
{
	struct answer a = { .body = json_object() };
	char *text;

	cancelled_tell(&a);
	text = json_dumps(json_object_get(a.body, "cancelled"), JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(a.body);
	return text;
}

static void test_waited_and_gone(void **state)
{
	char *text;

	(void)state;
	cancelled_min_job_age(300);
	cancelled_turn();
	note(SJ_PENDING, "1-3%2", 100);
	assert_null(told());
	cancelled_turn();
	note(SJ_PENDING, "3%2", 100);
	note(SJ_RUNNING, "1", 100);
	text = told();
	assert_string_equal(text, "{\"" TOKEN "\":[[2]]}");
	free(text);
}

/* While it leaves its node it waits as it was submitted first, then as if it were new. */
static void test_sent_back_into_the_queue(void **state)
{
	(void)state;
	cancelled_turn();
	cancelled_turn();
	note(SJ_RUNNING, "0", 100);
	note(SJ_RUNNING, "1", 100);
	assert_null(told());
	cancelled_turn();
	note(SJ_RUNNING, "0", 100);
	note(SJ_PENDING | SJ_COMPLETING, "1", 100);
	assert_null(told());
	cancelled_turn();
	note(SJ_RUNNING, "0", 100);
	note(SJ_PENDING, "1", 105);
	assert_null(told());
	cancelled_turn();
	note(SJ_RUNNING, "0", 100);
	note(SJ_RUNNING, "1", 105);
	assert_null(told());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waited_and_gone),
		cmocka_unit_test(test_sent_back_into_the_queue),
	};

	return cmocka_run_group_tests_name("cancelled", tests, NULL, NULL);
}
