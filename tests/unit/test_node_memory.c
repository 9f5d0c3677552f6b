/* SPDX-License-Identifier: MIT */
/* test_node_memory.c - scores of nodes: who is blamed, how it fades, who is avoided, and that never
 * too many are. */
#include "tests/unit/unit.h"

#include <signal.h>

#include "daemon/engine/decide/node_memory.h"
#include "daemon/engine/decide/suspects.h"

enum { HOUR = 3600 * 1000, DAY = 24 * HOUR };

static const struct node_rules rules = { .half_life_ms = DAY,
					 .threshold = 0.75,
					 .max_excluded = 2 };

static void blame_goes_to_whom_it_may_belong(void **state)
{
	/* clang-format off */
	static const struct {
		enum cause cause;
		bool blame_run;
		int signal;
		size_t nodes;
		double want;
	} rows[] = {
		{ CAUSE_NODE_FAIL, false, 0, 1, 1 },	{ CAUSE_NODE_FAIL, false, 0, 4, 0.25 },
		{ CAUSE_LAUNCH_FAIL, false, 0, 1, 1 },	{ CAUSE_LAUNCH_FAIL, true, 0, 1, 0 },
		{ CAUSE_NODE_FAIL, true, 0, 4, 0 },
		{ CAUSE_CRASH, true, SIGSEGV, 1, 0.5 },	{ CAUSE_CRASH, true, SIGBUS, 2, 0.25 },
		/* by hand, or for want of memory: nothing points at the node */
		{ CAUSE_CRASH, true, SIGKILL, 1, 0 },	{ CAUSE_CRASH, true, SIGTERM, 1, 0 },
		{ CAUSE_CRASH, true, SIGABRT, 1, 0 },	{ CAUSE_CRASH, true, 0, 1, 0 },
		{ CAUSE_HANG, true, 0, 1, 0.25 },
		{ CAUSE_ERROR, true, 0, 1, 0 },		{ CAUSE_OOM, true, SIGKILL, 1, 0 },
		{ CAUSE_COMPLETED, true, 0, 1, 0 },	{ CAUSE_KILLED, true, 0, 1, 0 },
		{ CAUSE_TIMEOUT, false, 0, 1, 0 },	{ CAUSE_PREEMPTED, false, 0, 1, 0 },
		{ CAUSE_LOST, false, 0, 1, 0 },		{ CAUSE_NODE_FAIL, false, 0, 0, 0 },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_float_equal(node_blame(rows[i].cause, rows[i].blame_run, rows[i].signal,
					      rows[i].nodes),
				   rows[i].want, 1e-12);
}

static void a_named_node_has_all_of_the_blame(void **state)
{
	(void)state;
	assert_float_equal(node_blame_named(CAUSE_CRASH), 0.5, 1e-12);
	assert_float_equal(node_blame_named(CAUSE_HANG), 0.5, 1e-12);
	assert_float_equal(node_blame_named(CAUSE_ERROR), 0.5, 1e-12);
	assert_float_equal(node_blame_named(CAUSE_OOM), 0, 1e-12);
	assert_float_equal(node_blame_named(CAUSE_COMPLETED), 0, 1e-12);
	assert_float_equal(node_blame_named(CAUSE_KILLED), 0, 1e-12);
	assert_float_equal(node_blame_named(CAUSE_LOST), 0, 1e-12);
	/* an error line and the end that follows are enough, whatever the size of the job */
	assert_true(NODE_ERROR_BLAME + node_blame_named(CAUSE_CRASH) >= rules.threshold);
}

static void scores_fade(void **state)
{
	(void)state;
	assert_float_equal(node_score_at(1, 0, 0, DAY), 1, 1e-12);
	assert_float_equal(node_score_at(1, 0, DAY, DAY), 0.5, 1e-12);
	assert_float_equal(node_score_at(2, 5, 5 + 3 * (int64_t)DAY, DAY), 0.25, 1e-12);
	assert_float_equal(node_score_at(1, DAY, 0, DAY), 1, 1e-12); /* the clock went back */
	assert_float_equal(node_score_at(1, 0, INT64_MAX / 2, DAY), 0, 1e-12);
}

/* The time that is told is the time at which the choice changes. */
static void a_failed_node_is_avoided_for_hours_not_for_ever(void **state)
{
	struct node_note note = { .name = TEXT("n1"), .score = 1 };
	int64_t ms = node_avoided_ms(1, 0, &rules);

	(void)state;
	assert_in_range(ms, 9 * HOUR, 10 * HOUR);
	assert_int_equal(node_choose(&note, 1, 100, &rules, ms - 1000), 1);
	note = (struct node_note){ .name = TEXT("n1"), .score = 1 };
	assert_int_equal(node_choose(&note, 1, 100, &rules, ms + 1000), 0);
	assert_int_equal(node_avoided_ms(0.74, 0, &rules), 0);
}

static void one_crash_is_nobodys_fault_two_are(void **state)
{
	double crash = node_blame(CAUSE_CRASH, true, SIGSEGV, 1);
	struct node_note note = { .name = TEXT("n1"), .score = crash };

	(void)state;
	assert_int_equal(node_choose(&note, 1, 100, &rules, 0), 0);
	note.score = node_score_at(crash, 0, 12 * HOUR, DAY) + crash;
	note.score_ms = 12 * HOUR;
	assert_int_equal(node_choose(&note, 1, 100, &rules, 12 * HOUR), 1);
	note.score = node_score_at(crash, 0, 2 * (int64_t)DAY, DAY) + crash;
	note.score_ms = 2 * (int64_t)DAY;
	assert_int_equal(node_choose(&note, 1, 100, &rules, 2 * (int64_t)DAY), 0);
}

/* Two failures within weeks, long faded as scores: nobody has repaired it. */
static void who_does_it_again_is_avoided_for_weeks(void **state)
{
	struct node_rules long_memory = rules;
	struct node_note notes[] = {
		{ .name = TEXT("once"), .record = 1 },
		{ .name = TEXT("now"), .score = 0.8, .record = 0.8 },
		{ .name = TEXT("again"), .record = 2 },
	};

	(void)state;
	long_memory.repeat_half_life_ms = 30 * (int64_t)DAY;
	long_memory.max_excluded = 3;
	assert_int_equal(node_choose(notes, COUNT(notes), 100, &long_memory, 0), 2);
	assert_string_equal(notes[0].name, "again");
	assert_string_equal(notes[1].name, "now");
	assert_in_range(node_avoided_ms(0, 2, &long_memory), 12 * (int64_t)DAY, 13 * (int64_t)DAY);
	assert_int_equal(node_avoided_ms(0, 1, &long_memory), 0);
	assert_int_equal(node_choose(notes, COUNT(notes), 100, &long_memory, 12 * (int64_t)DAY), 1);
	assert_int_equal(node_choose(notes, COUNT(notes), 100, &long_memory, 13 * (int64_t)DAY), 0);
	notes[0].record = 10; /* nobody keeps one */
	assert_int_equal(node_choose(notes, 1, 100, &rules, 13 * (int64_t)DAY), 0);
	assert_int_equal(node_avoided_ms(0, 10, &rules), 0);
}

static void never_more_than_a_share(void **state)
{
	struct node_rules shared = rules;
	struct node_note notes[] = {
		{ .name = TEXT("a"), .score = 1 },
		{ .name = TEXT("b"), .score = 2 },
		{ .name = TEXT("c"), .score = 3 },
	};

	(void)state;
	shared.max_excluded = 4;
	shared.max_share = 0.25;
	assert_int_equal(node_limit(&shared, 0), 1);
	assert_int_equal(node_limit(&shared, 3), 1);
	assert_int_equal(node_limit(&shared, 8), 2);
	assert_int_equal(node_limit(&shared, 1000), 4);
	assert_int_equal(node_choose(notes, COUNT(notes), 8, &shared, 0), 2);
	assert_string_equal(notes[0].name, "c");
	shared.max_excluded = 0;
	assert_int_equal(node_limit(&shared, 1000), 0);
}

static void the_worst_are_chosen_and_never_too_many(void **state)
{
	struct node_note notes[] = {
		{ .name = TEXT("a"), .score = 0.9 },
		{ .name = TEXT("b"), .score = 3 },
		{ .name = TEXT("c"), .score = 0.1 },
		{ .name = TEXT("d"), .score = 0.9 },
		{ .name = TEXT("e"), .score = 4, .score_ms = -10 * (int64_t)DAY },
	};
	struct node_rules none = rules;

	(void)state;
	assert_int_equal(node_choose(notes, COUNT(notes), 100, &rules, 0), 2);
	assert_string_equal(notes[0].name, "b");
	assert_string_equal(notes[1].name, "a");
	none.max_excluded = 0;
	assert_int_equal(node_choose(notes, COUNT(notes), 100, &none, 0), 0);
	assert_int_equal(node_choose(NULL, 0, 100, &rules, 0), 0);
}

static void ends(struct suspects *s, enum cause cause, const char *node, double blame)
{
	suspects_end(s, cause);
	suspects_add(s, cause, node, blame);
}

static double proven(const struct suspects *s, const char *node)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->items[i].node, node) == 0)
			return suspects_proven(s, &s->items[i]);
	return -1;
}

/* A wrong --output: FAILED before lbrun begins, on whichever node. */
static void a_job_that_begins_nowhere_is_no_nodes_fault(void **state)
{
	struct suspects s = { 0 };
	double blame = node_blame(CAUSE_LAUNCH_FAIL, false, 0, 1);

	(void)state;
	ends(&s, CAUSE_LAUNCH_FAIL, "n1", blame);
	assert_true(suspects_blame(&s, "n1") >= rules.threshold);
	assert_false(suspects_clear_nodes(&s, CAUSE_LAUNCH_FAIL));
	/* had it begun elsewhere now: by one run's word no other run avoids the node, by two they
	 * do */
	assert_true(proven(&s, "n1") > 0 && proven(&s, "n1") < rules.threshold);
	assert_true(2 * proven(&s, "n1") >= rules.threshold);
	ends(&s, CAUSE_LAUNCH_FAIL, "n1", blame);
	assert_true(proven(&s, "n1") < rules.threshold); /* again, and still one run's word */
	assert_false(suspects_clear_nodes(&s, CAUSE_LAUNCH_FAIL));
	ends(&s, CAUSE_LAUNCH_FAIL, "n2", blame);
	assert_true(suspects_clear_nodes(&s, CAUSE_LAUNCH_FAIL));
	assert_float_equal(proven(&s, "n1"), 0, 1e-12);
	assert_float_equal(proven(&s, "n2"), 0, 1e-12);
	suspects_forget(&s, CAUSE_LAUNCH_FAIL);
	assert_float_equal(suspects_blame(&s, "n1"), 0, 1e-12);
	assert_false(suspects_clear_nodes(&s, CAUSE_LAUNCH_FAIL));
	free(s.items);
}

static void a_trainer_that_crashes_everywhere_is_no_nodes_fault(void **state)
{
	struct suspects s = { 0 };
	double blame = node_blame(CAUSE_CRASH, true, SIGSEGV, 1);

	(void)state;
	ends(&s, CAUSE_CRASH, "n1", blame);
	ends(&s, CAUSE_CRASH, "n1", blame);
	ends(&s, CAUSE_HANG, "n3", 0.25); /* another matter */
	assert_true(proven(&s, "n1") >= rules.threshold);
	ends(&s, CAUSE_CRASH, "n2", blame);
	assert_float_equal(proven(&s, "n1"), 0, 1e-12);
	assert_float_equal(proven(&s, "n2"), 0, 1e-12);
	assert_float_equal(proven(&s, "n3"), 0.25, 1e-12);
	suspects_forget(&s, CAUSE_CRASH);
	assert_int_equal(s.count, 1);
	suspects_forget(&s, CAUSE_NONE);
	ends(&s, CAUSE_CRASH, "n2", blame);
	assert_float_equal(proven(&s, "n2"), blame, 1e-12);
	for (int i = 0; i < 2 * SUSPECTS_MAX; i++) {
		char node[SUSPECT_NAME_BYTES];

		snprintf(node, sizeof(node), "m%d", i);
		suspects_add(&s, CAUSE_HANG, node, 0.01);
	}
	assert_int_equal(s.count, SUSPECTS_MAX);
	free(s.items);
}

/* For everybody else the node is as good as any. */
static void a_run_keeps_away_from_its_own_suspects(void **state)
{
	struct node_note notes[] = {
		{ .name = TEXT("a"), .score = 0.8 },
		{ .name = TEXT("b"), .own = 1 },
		{ .name = TEXT("c"), .score = 0.5, .own = 0.25 },
	};

	(void)state;
	assert_int_equal(node_choose(notes, COUNT(notes), 100, &rules, 0), 2);
	assert_string_equal(notes[0].name, "b");
	assert_true(notes[2].is_avoided);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blame_goes_to_whom_it_may_belong),
		cmocka_unit_test(a_named_node_has_all_of_the_blame),
		cmocka_unit_test(scores_fade),
		cmocka_unit_test(a_failed_node_is_avoided_for_hours_not_for_ever),
		cmocka_unit_test(one_crash_is_nobodys_fault_two_are),
		cmocka_unit_test(who_does_it_again_is_avoided_for_weeks),
		cmocka_unit_test(never_more_than_a_share),
		cmocka_unit_test(the_worst_are_chosen_and_never_too_many),
		cmocka_unit_test(a_job_that_begins_nowhere_is_no_nodes_fault),
		cmocka_unit_test(a_trainer_that_crashes_everywhere_is_no_nodes_fault),
		cmocka_unit_test(a_run_keeps_away_from_its_own_suspects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
