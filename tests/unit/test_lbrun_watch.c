/* SPDX-License-Identifier: MIT */
/* test_lbrun_watch.c - when a trainer counts as hung, and when it does not. */
#include "tests/unit/unit.h"

#include "worker/lbrun/watch/watch.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, START = 1000000 };

static const struct attempt_watch usual = {
	.setup_ms = 30 * MINUTE,
	.step_ms = WATCH_AUTO,
	.checkpoint_ms = 20 * MINUTE,
	.eval_ms = 10 * MINUTE,
};

static void test_learned(void **state)
{
	static const struct {
		int64_t intervals[8];
		size_t count;
		int64_t ms;
	} cases[] = {
		{ { 1, 1, 1, 1 }, 4, 0 },
		{ { 1, 1, 1, 1, 1 }, 5, WATCH_FLOOR_MS },
		{ { 12000, 12000, 12000, 12000, 12000 }, 5, WATCH_FLOOR_MS },
		{ { 20000, 20000, 20000, 20000, 20000 }, 5, 100000 },
		/* one long pause, or one quick step, changes nothing */
		{ { 20000, 900000, 20000, 1, 20000 }, 5, 100000 },
		{ { 50000, 10000, 40000, 20000, 30000 }, 5, 150000 },
		{ { 20000, 20000, 20000, 30000, 30000, 30000 }, 6, 150000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(watch_learned_ms(cases[i].intervals, cases[i].count), cases[i].ms);
}

static int64_t steps(struct watch *w, int64_t now_ms, int count, int64_t each_ms)
{
	for (int i = 0; i < count; i++) {
		now_ms += each_ms;
		watch_step(w, 0, now_ms);
	}
	return now_ms;
}

static void test_first_steps_do_not_count(void **state)
{
	struct watch w;
	int64_t now = START;

	(void)state;
	watch_init(&w, &usual, now);
	watch_phase(&w, 0, "train", now);
	now = steps(&w, now, 5, 10 * MINUTE);
	assert_int_equal(w.learned, 0);
	assert_int_equal(watch_limit_ms(&w), usual.setup_ms);
	now = steps(&w, now, 4, 20 * SECOND);
	assert_int_equal(watch_limit_ms(&w), usual.setup_ms);
	now = steps(&w, now, 1, 20 * SECOND);
	assert_int_equal(watch_limit_ms(&w), 100 * SECOND);
	assert_int_equal(watch_next_ms(&w), now + 100 * SECOND);
}

static void test_learns_anew(void **state)
{
	struct watch w;
	int64_t now = START;

	(void)state;
	watch_init(&w, &usual, now);
	watch_phase(&w, 0, "train", now);
	now = steps(&w, now, 100, 20 * SECOND);
	assert_int_equal(watch_limit_ms(&w), 100 * SECOND);
	/* longer sequences from here on: each is within the limit, and the limit follows */
	now = steps(&w, now, 64, 90 * SECOND);
	assert_int_equal(watch_limit_ms(&w), 450 * SECOND);
}

static void test_phases(void **state)
{
	struct watch w;
	int64_t now = START;

	(void)state;
	watch_init(&w, &usual, now);
	assert_true(watch_next_ms(&w) == INT64_MAX); /* it may never report */
	watch_sign(&w, now);
	assert_int_equal(watch_next_ms(&w), now + 30 * MINUTE);
	watch_phase(&w, 0, "train", now);
	now = steps(&w, now, 20, SECOND);
	assert_int_equal(watch_next_ms(&w), now + MINUTE);
	watch_phase(&w, 0, "checkpoint", now);
	assert_int_equal(watch_next_ms(&w), now + 20 * MINUTE);
	watch_phase(&w, 0, "eval", now += 5 * MINUTE);
	assert_int_equal(watch_next_ms(&w), now + 10 * MINUTE);
	watch_phase(&w, 0, "train", now += 5 * MINUTE);
	/* what lies between is no step's time */
	now = steps(&w, now, 1, SECOND);
	assert_int_equal(watch_learned_ms(w.intervals, (size_t)w.learned), MINUTE);
	assert_int_equal(w.learned, 15);
	watch_bye(&w, now);
	assert_int_equal(watch_next_ms(&w), now + 30 * MINUTE);
}

/* Who tells no phases may be writing a checkpoint. */
static void test_no_phases(void **state)
{
	struct attempt_watch limits = usual;
	struct watch w;
	int64_t now;

	(void)state;
	watch_init(&w, &limits, START);
	now = steps(&w, START, 20, SECOND);
	assert_int_equal(watch_next_ms(&w), now + 20 * MINUTE);
	limits.eval_ms = 0;
	watch_init(&w, &limits, START);
	steps(&w, START, 20, SECOND);
	assert_true(watch_next_ms(&w) == INT64_MAX);
	limits.step_ms = 5 * MINUTE;
	watch_init(&w, &limits, START);
	now = steps(&w, START, 20, SECOND);
	assert_int_equal(watch_next_ms(&w), now + 5 * MINUTE);
}

static void test_no_limits(void **state)
{
	static const struct attempt_watch none = { 0 };
	struct watch w;

	(void)state;
	watch_init(&w, &none, START);
	for (const char *const *name =
		     (const char *const[]){ "setup", "train", "checkpoint", "eval", NULL };
	     *name; name++) {
		watch_phase(&w, 0, *name, START);
		assert_true(watch_next_ms(&w) == INT64_MAX);
	}
}

static void test_output(void **state)
{
	static const struct attempt_watch limits = { .output_ms = MINUTE };
	struct watch w;

	(void)state;
	watch_init(&w, &limits, START);
	watch_output(&w, START + MINUTE);
	assert_int_equal(watch_next_ms(&w), START + 2 * MINUTE);
	/* from the first report on it is judged by its reports */
	watch_step(&w, 0, START + MINUTE);
	assert_true(watch_next_ms(&w) == INT64_MAX);
}

/* Eight ranks that all report each step are no eight steps. */
static void test_ranks(void **state)
{
	struct watch w;
	int64_t now = START;

	(void)state;
	watch_init(&w, &usual, now);
	watch_phase(&w, 7, "train", now);
	for (int step = 0; step < 30; step++) {
		now += 30 * SECOND;
		for (int rank = 7; rank >= 0; rank--)
			watch_step(&w, rank, now + rank);
	}
	assert_int_equal(watch_limit_ms(&w), 150 * SECOND);
	/* others may go on while the leader writes its checkpoint */
	watch_phase(&w, 0, "checkpoint", now);
	watch_step(&w, 3, now);
	assert_int_equal(watch_limit_ms(&w), usual.checkpoint_ms);
}

static void test_excuse(void **state)
{
	struct watch w;
	int64_t now = START;

	(void)state;
	watch_init(&w, &usual, now);
	watch_phase(&w, 0, "train", now);
	now = steps(&w, now, 20, SECOND);
	now += 3600 * SECOND;
	assert_true(watch_next_ms(&w) <= now);
	watch_excuse(&w, 3600 * SECOND);
	assert_true(watch_next_ms(&w) > now);
	steps(&w, now, 20, SECOND);
	for (int i = 0; i < w.learned; i++)
		assert_int_equal(w.intervals[i], SECOND);
}

static void test_describe(void **state)
{
	struct watch w;
	char text[120];
	int64_t now = START;

	(void)state;
	watch_init(&w, &usual, now);
	watch_phase(&w, 0, "checkpoint", now);
	watch_describe(&w, now + 20 * MINUTE, text, sizeof(text));
	assert_string_equal(text, "a checkpoint not done for 20m00s (allowed: 20m00s)");
	now = steps(&w, now, 20, SECOND);
	watch_phase(&w, 0, "train", now);
	watch_describe(&w, now + MINUTE, text, sizeof(text));
	assert_string_equal(text, "no step for 1m00s (allowed: 1m00s, learned)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learned),     cmocka_unit_test(test_first_steps_do_not_count),
		cmocka_unit_test(test_learns_anew), cmocka_unit_test(test_phases),
		cmocka_unit_test(test_no_phases),   cmocka_unit_test(test_no_limits),
		cmocka_unit_test(test_output),      cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_excuse),      cmocka_unit_test(test_describe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
