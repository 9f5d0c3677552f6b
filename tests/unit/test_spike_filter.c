/* SPDX-License-Identifier: MIT */
/* test_spike_filter.c - which steps are left out, and when it has been too many. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "worker/lbworker/optim/spike_filter.h"

static void test_no_number(void **state)
{
	const struct spike_rules rules = { .max_skips = 2 };
	static const struct {
		double loss, norm;
		enum step_verdict want;
	} steps[] = {
		{ 5, 1, STEP_GO },         { NAN, 1, STEP_SKIP },      { 5, INFINITY, STEP_SKIP },
		{ 5, 1, STEP_GO },         { INFINITY, 1, STEP_SKIP }, { 5, NAN, STEP_SKIP },
		{ 5, NAN, STEP_DIVERGED },
	};
	struct spike_filter g = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_int_equal(spike_filter_judge(&g, &rules, steps[i].loss, steps[i].norm),
				 steps[i].want);
	assert_int_equal(g.skipped, 4);
	assert_int_equal(g.judged, 2);
	assert_true(g.usual_norm == 1);
}

static void test_strict(void **state)
{
	const struct spike_rules rules = { 0 };
	struct spike_filter g = { 0 };

	(void)state;
	/* spikes are let through */
	assert_int_equal(spike_filter_judge(&g, &rules, 1, 1e30), STEP_GO);
	assert_int_equal(spike_filter_judge(&g, &rules, NAN, 1), STEP_DIVERGED);
	assert_int_equal(g.skipped, 0);
}

static void test_spikes(void **state)
{
	const struct spike_rules rules = { .max_skips = 3, .spike_factor = 5 };
	struct spike_filter g = { 0 };

	(void)state;
	/* the first are no measure */
	assert_int_equal(spike_filter_judge(&g, &rules, 5, 100), STEP_GO);
	for (int i = 0; i < 200; i++)
		assert_int_equal(spike_filter_judge(&g, &rules, 5, i % 2 ? 1 : 3), STEP_GO);
	assert_true(fabs(g.usual_norm - 2) < 0.5);
	assert_int_equal(spike_filter_judge(&g, &rules, 5, 9), STEP_GO);
	assert_int_equal(spike_filter_judge(&g, &rules, 5, 14), STEP_SKIP);
	double usual = g.usual_norm;
	assert_int_equal(spike_filter_judge(&g, &rules, 5, 1e6), STEP_SKIP);
	assert_true(g.usual_norm == usual); /* a spike is not usual */
	assert_int_equal(spike_filter_judge(&g, &rules, 5, 2), STEP_GO);
	assert_int_equal(g.in_a_row, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_number),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_spikes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
