/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/run_state.h"

static void test_names_go_there_and_back(void **state)
{
	(void)state;
	for (int i = 0; i < RUN_STATE_COUNT; i++)
		assert_int_equal(run_state_from_name(run_state_name(i)), i);
	for (int i = 0; i < ATTEMPT_STATE_COUNT; i++)
		assert_int_equal(attempt_state_from_name(attempt_state_name(i)), i);
	for (int i = 0; i < CAUSE_COUNT; i++)
		assert_int_equal(cause_from_name(cause_name(i)), i);
	for (int i = 0; i < ORDER_COUNT; i++)
		assert_int_equal(run_order_from_name(run_order_name(i)), i);
	assert_int_equal(run_state_from_name("nonsense"), RUN_STATE_COUNT);
	assert_int_equal(run_state_from_name(NULL), RUN_STATE_COUNT);
	assert_int_equal(cause_from_name(""), CAUSE_COUNT);
	assert_string_equal(run_state_name((enum run_state)77), "?");
	assert_string_equal(cause_name(CAUSE_NODE_FAIL), "node_fail");
	assert_string_equal(run_order_name(ORDER_KILL_NOW), "kill_now");
}

/* The whole table again, by hand, as one line per state: a move that slips in or out shows. */
static void test_every_move(void **state)
{
	static const char *const may[RUN_STATE_COUNT] = {
		[RUN_CREATED] = "submitting stopping held failed killed",
		[RUN_SUBMITTING] = "queued running stopping backoff held completed failed killed",
		[RUN_QUEUED] = "running stopping backoff held completed failed killed",
		[RUN_RUNNING] = "stopping backoff held completed failed killed",
		[RUN_STOPPING] = "held completed failed killed",
		[RUN_BACKOFF] = "submitting stopping held failed killed",
		[RUN_HELD] = "created stopping killed",
		[RUN_COMPLETED] = "created",
		[RUN_FAILED] = "created",
		[RUN_KILLED] = "created",
	};

	(void)state;
	for (int from = 0; from < RUN_STATE_COUNT; from++) {
		for (int to = 0; to < RUN_STATE_COUNT; to++) {
			bool expected = strstr(may[from], run_state_name(to)) != NULL;

			if (run_state_may_follow(from, to) != expected)
				fail_msg("%s -> %s", run_state_name(from), run_state_name(to));
		}
	}
	assert_false(run_state_may_follow(RUN_STATE_COUNT, RUN_CREATED));
	assert_false(run_state_may_follow(RUN_CREATED, RUN_STATE_COUNT));
}

static void test_final_states(void **state)
{
	(void)state;
	for (int s = 0; s < RUN_STATE_COUNT; s++) {
		bool final = s == RUN_COMPLETED || s == RUN_FAILED || s == RUN_KILLED;

		assert_int_equal(run_state_is_final(s), final);
		/* A killed run never comes back by itself: only a person's restart leads out. */
		for (int to = 0; final && to < RUN_STATE_COUNT; to++)
			assert_int_equal(run_state_may_follow(s, to), to == RUN_CREATED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_go_there_and_back),
		cmocka_unit_test(test_every_move),
		cmocka_unit_test(test_final_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
