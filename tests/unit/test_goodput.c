/* SPDX-License-Identifier: MIT */
/* test_goodput.c - a history with every kind of time in it, counted by hand. */
#include "tests/unit/unit.h"

#include <math.h>

#include "common/base/json.h"
#include "ctl/team/team_goodput.h"
#include "daemon/runs/goodput.h"

static const struct goodput_launch first[] = {
	/* from scratch: 10 start-up, steps 120..300, saved 250, dead at 310: 50 + 10 lost */
	{ 110, 310, CAUSE_CRASH, -1, 120, 300, 250 },
	/* again in place after 5: 15 restore, saved at 400, last step 420, hung until 500 */
	{ 315, 500, CAUSE_HANG, 7, 330, 420, 400 },
};
static const struct goodput_launch second[] = {
	{ 700, 1000, CAUSE_COMPLETED, 9, 720, 990, 0 },
};
static const struct goodput_attempt history[] = {
	{ CAUSE_PREEMPTED, 20, 100, 510, first,
	  COUNT(first) }, /* 20 other, 80 queue, 10 start-up */
	{ CAUSE_COMPLETED, 570, 690, 1000, second,
	  COUNT(second) }, /* 60 pause, 120 queue, 10 start-up, 20 restore */
};

static void every_millisecond_has_its_place(void **state)
{
	static const int64_t want[SPENT_COUNT] = {
		[SPENT_PRODUCTIVE] = 130 + 70 + 280,
		[SPENT_QUEUE] = 80 + 120,
		[SPENT_STARTUP] = 10 + 10 + 5 + 10,
		[SPENT_RESTORE] = 15 + 20,
		[SPENT_LOST] = 60 + 20,
		[SPENT_HANG] = 80,
		[SPENT_PAUSE] = 60,
		[SPENT_OTHER] = 20 + 10,
	};
	struct goodput g;

	(void)state;
	goodput_count(history, COUNT(history), 0, 0, 1000, &g);
	for (int i = 0; i < SPENT_COUNT; i++)
		if (g.ms[i] != want[i])
			fail_msg("%s: %lld, expected %lld", spent_name((enum spent)i),
				 (long long)g.ms[i], (long long)want[i]);
	assert_int_equal(g.total_ms, 1000);
	assert_float_equal(g.ettr, 0.48, 1e-9);
}

/* What lies between an end and a restart is nobody's, as far as it is looked at. */
static void idle_time_is_left_out(void **state)
{
	struct goodput g = { .ms = { [SPENT_PRODUCTIVE] = 50, [SPENT_PAUSE] = 100 },
			     .total_ms = 150 };

	(void)state;
	goodput_leave_out(&g, 10, 60, 20, 1000);
	assert_int_equal(g.ms[SPENT_PAUSE], 60);
	assert_int_equal(g.total_ms, 110);
	goodput_leave_out(&g, 900, 2000, 20, 950);
	assert_int_equal(g.total_ms, 60);
	assert_float_equal(g.ettr, 50 / 60.0, 1e-9);
	goodput_leave_out(&g, 0, 10, 20, 950); /* before all that is looked at */
	goodput_leave_out(&g, 0, 1000, 0, 1000);
	assert_int_equal(g.ms[SPENT_PAUSE], 0);
	assert_int_equal(g.total_ms, 50);
}

static void since_cuts_the_past_off(void **state)
{
	struct goodput all, late;

	(void)state;
	goodput_count(history, COUNT(history), 0, 720, 1000, &late);
	assert_int_equal(late.total_ms, 280);
	assert_float_equal(late.ettr, 1, 1e-9);
	for (int64_t since = 0; since <= 1000; since += 13) {
		goodput_count(history, COUNT(history), 0, since, 1000, &all);
		assert_int_equal(all.total_ms, 1000 - since);
	}
}

static void what_runs_is_productive_until_now(void **state)
{
	static const struct goodput_launch live = { 10, 0, CAUSE_NONE, -1, 20, 90, 50 };
	static const struct goodput_attempt attempt = { CAUSE_NONE, 0, 5, 0, &live, 1 };
	static const struct goodput_attempt waiting = { CAUSE_NONE, 0, 0, 0, NULL, 0 };
	struct goodput g;

	(void)state;
	goodput_count(&attempt, 1, 0, 0, 100, &g);
	assert_int_equal(g.ms[SPENT_PRODUCTIVE], 80);
	goodput_count(&waiting, 1, 0, 0, 100, &g);
	assert_int_equal(g.ms[SPENT_QUEUE], 100);
	goodput_count(NULL, 0, 100, 0, 100, &g);
	assert_true(isnan(g.ettr));
}

/* A launch that lbrun was told to end is the attempt's cause, not "lost". */
static void losses_have_their_causes(void **state)
{
	static const struct goodput_launch told = { 110, 310, CAUSE_LOST, -1, 120, 300, 250 };
	static const struct goodput_attempt preempted = { CAUSE_PREEMPTED, 0, 100, 310, &told, 1 };
	struct goodput g;

	(void)state;
	goodput_count(history, COUNT(history), 0, 0, 1000, &g);
	assert_int_equal(g.wasted_ms[CAUSE_CRASH], 60);
	assert_int_equal(g.wasted_ms[CAUSE_HANG], 20 + 80);
	assert_int_equal(g.wasted_ms[CAUSE_COMPLETED], 0);
	assert_int_equal(g.ends[CAUSE_CRASH], 1);
	assert_int_equal(g.ends[CAUSE_HANG], 1);
	assert_int_equal(g.ends[CAUSE_COMPLETED], 1);
	goodput_count(history, COUNT(history), 0, 310, 1000, &g);
	assert_int_equal(g.ends[CAUSE_CRASH], 0);
	goodput_count(&preempted, 1, 0, 0, 310, &g);
	assert_int_equal(g.wasted_ms[CAUSE_PREEMPTED], 60);
	assert_int_equal(g.wasted_ms[CAUSE_LOST], 0);
	assert_int_equal(g.ends[CAUSE_PREEMPTED], 1);
}

/* A sum of rounded hours ended in other digits. */
static void a_colleague_is_told_the_same(void **state)
{
	static const struct goodput_launch launch = {
		4321, 5416, CAUSE_COMPLETED, 0, 4321, 5416, 0
	};
	static const struct goodput_attempt attempt = {
		CAUSE_COMPLETED, 0, 4321, 5416, &launch, 1
	};
	struct goodput own;
	json_t *run, *told;

	(void)state;
	goodput_count(&attempt, 1, 0, 0, 5416, &own);
	run = json_pack("{s:{s:i, s:[{s:{s:I, s:I}}]}}", "goodput", "gpus", 1, "weeks", "ms",
			spent_name(SPENT_PRODUCTIVE), own.ms[SPENT_PRODUCTIVE],
			spent_name(SPENT_QUEUE), own.ms[SPENT_QUEUE]);
	told = team_goodput(run, NULL);
	assert_true(js_real(told, "ettr", NAN) == own.ettr);
	assert_true(js_real(told, "hours_total", NAN) == 5416 / 3600e3);
	json_decref(told);
	json_decref(run);
}

static void any_time_may_be_asked_for(void **state)
{
	(void)state;
	assert_int_equal(goodput_moment(5000, 2), 3000);
	assert_int_equal(goodput_moment(5000, 0), 5000);
	assert_int_equal(goodput_moment(5000, 6), 0);
	assert_int_equal(goodput_moment(5000, INT64_MAX), 0);
	assert_int_equal(goodput_moment(5000, INT64_MIN), 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_millisecond_has_its_place),
		cmocka_unit_test(idle_time_is_left_out),
		cmocka_unit_test(since_cuts_the_past_off),
		cmocka_unit_test(what_runs_is_productive_until_now),
		cmocka_unit_test(losses_have_their_causes),
		cmocka_unit_test(any_time_may_be_asked_for),
		cmocka_unit_test(a_colleague_is_told_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
