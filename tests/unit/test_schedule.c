/* SPDX-License-Identifier: MIT */
/* test_schedule.c - learning rates by step, and which checkpoints stay. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/lbworker/checkpoint/retention.h"
#include "worker/lbworker/optim/schedule.h"

static void test_rates(void **state)
{
	const struct schedule linear = { .peak = 1,
					 .warmup_steps = 4,
					 .steps = 13,
					 .decay_ratio = -1,
					 .decay = SCHEDULE_LINEAR };
	const struct schedule cosine = { .peak = 2,
					 .warmup_steps = 0,
					 .steps = 8,
					 .decay_ratio = -1,
					 .decay = SCHEDULE_COSINE,
					 .min_factor = 0.1 };
	const struct schedule plateau = { .peak = 1,
					  .warmup_steps = 2,
					  .steps = 20,
					  .decay_ratio = 0.25,
					  .decay = SCHEDULE_LINEAR };
	const struct schedule wsd = { .peak = 1,
				      .warmup_steps = 2,
				      .steps = 20,
				      .decay_ratio = 0.2,
				      .decay = SCHEDULE_SQRT,
				      .min_factor = 0.5 };
	const struct schedule half = {
		.peak = 1, .steps = 10, .decay_ratio = 0.25, .decay = SCHEDULE_LINEAR
	};
	const struct {
		int which;
		int64_t step;
		double want;
	} cases[] = {
		{ 0, 1, 0.25 },
		{ 0, 4, 1 },
		{ 0, 5, 1 },
		{ 0, 6, 1 - 1.0 / 9 },
		{ 0, 13, 1 - 8.0 / 9 },
		{ 1, 1, 2 },
		{ 1, 5, 2 * (0.1 + 0.9 * 0.5) },
		{ 1, 9, 0.2 },
		{ 1, 1000, 0.2 },
		{ 2, 1, 0.5 },
		{ 2, 2, 1 },
		{ 2, 16, 1 },
		{ 2, 17, 0.8 },
		{ 2, 20, 0.2 },
		{ 3, 17, 1 },
		{ 3, 18, 0.5 + 0.5 * (1 - sqrt(0.25)) },
		{ 3, 20, 0.5 + 0.5 * (1 - sqrt(0.75)) },
		{ 3, 30, 0.5 },
		{ 4, 9, 1 }, /* half a step is rounded to the even number, as in Python */
		{ 4, 10, 0.5 },
	};
	const struct schedule *const schedules[] = { &linear, &cosine, &plateau, &wsd, &half };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double have = schedule_lr(schedules[cases[i].which], cases[i].step);
		if (fabs(have - cases[i].want) > 1e-12)
			fail_msg("case %zu: %g, not %g", i, have, cases[i].want);
	}
}

static void test_retention(void **state)
{
	(void)state;
	assert_true(retention_keeps(10, 0, 1, 0)); /* the newest two stay always */
	assert_true(retention_keeps(10, 1, 1, 0));
	assert_false(retention_keeps(10, 2, 1, 0));
	assert_true(retention_keeps(10, 2, 3, 0));
	assert_false(retention_keeps(10, 3, 3, 0));
	assert_true(retention_keeps(10, 1000, 0, 0)); /* 0: all */
	assert_true(retention_keeps(1000, 50, 3, 500));
	assert_false(retention_keeps(750, 50, 3, 500));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_retention),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
