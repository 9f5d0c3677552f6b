/* SPDX-License-Identifier: MIT */
/* test_stage_plan.c - which checkpoint in a node's stage is drained next, and which may go. */
#include "tests/unit/unit.h"

#include "worker/lbrun/checkpoint/stage_plan.h"

enum { GB = 1000 * 1000 * 1000, SECOND = 1000 };

static struct staged at(int64_t step, bool is_sealed)
{
	return (struct staged){ .step = step, .bytes = 10 * (int64_t)GB, .is_sealed = is_sealed };
}

static struct stage_view view_of(const struct staged *items, size_t count)
{
	return (struct stage_view){ .items = items,
				    .count = count,
				    .draining = -1,
				    .rate = GB,
				    .left_ms = INT64_MAX,
				    .free_bytes = INT64_MAX };
}

static void test_newest_is_drained_and_kept(void **state)
{
	struct staged items[] = { at(30, false), at(20, false), at(10, true) };
	struct stage_view v = view_of(items, 3);
	bool drops[3];

	(void)state;
	assert_int_equal(stage_decide(&v, drops).drain, 0);
	assert_false(drops[0]);
	assert_false(drops[1]); /* nothing newer counts yet */
	assert_true(drops[2]);  /* it is shared */
	items[0].is_sealed = true;
	assert_int_equal(stage_decide(&v, drops).drain, -1);
	assert_false(drops[0]); /* for a relaunch in place */
	assert_true(drops[1]);  /* superseded */
	assert_true(drops[2]);
}

static void test_nothing_that_is_needed_goes(void **state)
{
	struct staged items[] = { at(30, true), at(20, true) };
	struct stage_view v = view_of(items, 2);
	bool drops[2];

	(void)state;
	items[1].is_needed = true; /* the trainer may be loading it */
	stage_decide(&v, drops);
	assert_false(drops[1]);
	v.free_bytes = GB; /* another one would not fit */
	stage_decide(&v, drops);
	assert_true(drops[0]);
	items[0].is_sealed = false; /* but what no copy of counts stays, full or not */
	stage_decide(&v, drops);
	assert_false(drops[0]);
}

/* Saves that are quicker than drains must not keep any from being sealed. */
static void test_what_is_copied_is_finished(void **state)
{
	struct staged items[] = { at(30, false), at(20, false) };
	struct stage_view v = view_of(items, 2);
	struct stage_step step;
	bool drops[2];

	(void)state;
	v.draining = 1;
	v.is_limited = true;
	step = stage_decide(&v, drops);
	assert_int_equal(step.drain, 1);
	assert_false(step.breaks_off);
	assert_false(step.is_unlimited);
	assert_false(drops[1]);
}

static void test_the_end_is_near(void **state)
{
	struct staged items[] = { at(30, false), at(20, false) };
	struct stage_view v = view_of(items, 2);
	struct stage_step step;
	bool drops[2];

	(void)state;
	v.draining = 1;
	v.copied_bytes = 8 * (int64_t)GB;
	v.left_ms = 20 * SECOND;
	step = stage_decide(&v, drops);
	assert_int_equal(step.drain, 0); /* 10 s: the newest fits */
	assert_true(step.breaks_off);
	assert_true(step.is_unlimited);
	v.left_ms = 5 * SECOND;
	step = stage_decide(&v, drops);
	assert_int_equal(step.drain, 1); /* 2 s: the older one does, at least */
	assert_false(step.breaks_off);
	v.left_ms = 1 * SECOND;
	assert_int_equal(stage_decide(&v, drops).drain, 1); /* neither: the one that is nearest */
	v.rate = 0;
	assert_int_equal(stage_decide(&v, drops).drain, 0); /* nobody knows */
	v.draining = 0;
	v.is_limited = true;
	step = stage_decide(&v, drops);
	assert_int_equal(step.drain, 0);
	assert_true(step.breaks_off); /* to go on with it as fast as it can */
}

static void test_what_would_be_lost(void **state)
{
	struct staged items[] = { at(30, false), at(20, true) };
	struct stage_view v = view_of(items, 2);
	int64_t back_to;

	(void)state;
	assert_int_equal(stage_at_risk(&v, &back_to), 0);
	assert_int_equal(back_to, 20);
	assert_int_equal(stage_needs_ms(&v, 0), 10 * SECOND);
	v.draining = 0;
	v.copied_bytes = 4 * (int64_t)GB;
	assert_int_equal(stage_needs_ms(&v, 0), 6 * SECOND);
	v.rate = 0;
	assert_int_equal(stage_needs_ms(&v, 0), -1);
	v = view_of(items + 1, 1);
	assert_int_equal(stage_at_risk(&v, &back_to), -1);
	v.count = 0;
	assert_int_equal(stage_at_risk(&v, &back_to), -1);
	assert_int_equal(back_to, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_is_drained_and_kept),
		cmocka_unit_test(test_nothing_that_is_needed_goes),
		cmocka_unit_test(test_what_is_copied_is_finished),
		cmocka_unit_test(test_the_end_is_near),
		cmocka_unit_test(test_what_would_be_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
