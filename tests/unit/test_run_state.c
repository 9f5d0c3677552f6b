/* SPDX-License-Identifier: MIT */
/* test_run_state.c - legal moves, and the drawings and tables that must agree with them. */
#include "tests/unit/unit.h"

#include "common/base/files.h"
#include "common/run/run_state.h"
#include "tests/unit/source.h"

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

/* The moves as docs/ARCHITECTURE.md lists them, one line a state: "created    -> submitting, …". */
static const char *listed_moves(const char *document, const char *from, char out[256])
{
	char start[32];
	const char *line;

	snprintf(start, sizeof(start), "\n%-10s -> ", from);
	line = strstr(document, start);
	if (line == NULL)
		fail_msg("docs/ARCHITECTURE.md does not list the moves from %s", from);
	line += strlen(start);
	snprintf(out, 256, "%.*s", (int)strcspn(line, "\n"), line);
	return out;
}

static void test_every_move(void **state)
{
	char *document = file_read(source_path("docs/ARCHITECTURE.md"), 1 << 20, NULL, NULL);
	char listed[256];

	(void)state;
	assert_non_null(document);
	for (int from = 0; from < RUN_STATE_COUNT; from++) {
		listed_moves(document, run_state_name(from), listed);
		for (int to = 0; to < RUN_STATE_COUNT; to++) {
			bool expected = strstr(listed, run_state_name(to)) != NULL;

			if (run_state_may_follow(from, to) != expected)
				fail_msg("%s -> %s: code and document differ", run_state_name(from),
					 run_state_name(to));
		}
	}
	free(document);
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
