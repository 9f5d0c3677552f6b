/* SPDX-License-Identifier: MIT */
/* test_lbrun_ranks.c - slow ranks are named, unlucky ones are not; and room for the next
 * checkpoint. */
#include "tests/unit/unit.h"

#include "worker/lbrun/watch/slow_ranks.h"
#include "worker/lbrun/watch/space.h"

enum { RANKS = 8 };

/* Which rank is named within so many steps; `slow` takes `ms`, the others about 100. */
static int64_t named(struct ranks *r, int steps, int64_t slow, double ms, double *usual_ms)
{
	unsigned seed = 1;

	for (int step = 0; step < steps; step++) {
		for (int rank = RANKS - 1; rank >= 0; rank--) {
			double own = 90 + rand_r(&seed) % 20;
			int64_t found = ranks_step(r, rank, rank == slow ? ms : own, 0, usual_ms);

			if (found >= 0)
				return found;
		}
	}
	return -1;
}

static void test_slow(void **state)
{
	struct ranks r = { 0 };
	double usual_ms;

	(void)state;
	ranks_reset(&r);
	/* steadily: not after one look, but after three */
	assert_int_equal(named(&r, 2 * RANKS_SPAN, 5, 150, &usual_ms), -1);
	assert_int_equal(named(&r, 2 * RANKS_SPAN, 5, 150, &usual_ms), 5);
	assert_true(usual_ms > 95 && usual_ms < 105);
	/* once */
	assert_int_equal(named(&r, 20 * RANKS_SPAN, 5, 150, &usual_ms), -1);
	assert_int_equal(named(&r, 20 * RANKS_SPAN, 0, 150, &usual_ms), 0);
	ranks_reset(&r);
}

static void test_not_slow(void **state)
{
	struct ranks r = { 0 };
	double usual_ms;

	(void)state;
	ranks_reset(&r);
	assert_int_equal(named(&r, 50 * RANKS_SPAN, -1, 0, &usual_ms), -1);
	assert_int_equal(named(&r, 50 * RANKS_SPAN, 3, 110, &usual_ms), -1);
	/* a rank that had one bad moment */
	assert_int_equal(ranks_step(&r, 3, 2000, 0, &usual_ms), -1);
	assert_int_equal(named(&r, 50 * RANKS_SPAN, -1, 0, &usual_ms), -1);
	/* what cannot be */
	assert_int_equal(ranks_step(&r, -1, 100, 0, &usual_ms), -1);
	assert_int_equal(ranks_step(&r, RANKS_MAX, 100, 0, &usual_ms), -1);
	assert_int_equal(ranks_step(&r, 1, -100, 0, &usual_ms), -1);
	ranks_reset(&r);
	/* one alone is neither slow nor fast */
	for (int step = 0; step < 10 * RANKS_SPAN; step++)
		assert_int_equal(ranks_step(&r, 0, 100, 0, &usual_ms), -1);
	ranks_reset(&r);
}

static void test_space(void **state)
{
	static const struct {
		struct space need, have;
		const char *text; /* NULL = enough */
	} cases[] = {
		{ { 5000000000, 4 },
		  { 4000000000, 9 },
		  "a checkpoint takes 5.0 GB, 4.0 GB are free" },
		{ { 5000000000, 4 },
		  { 5000000000, 3 },
		  "a checkpoint takes 4 files, 3 more are possible" },
		{ { 5000000000, 4 }, { 5000000000, -1 }, NULL },
		{ { 5000000000, 4 }, { -1, -1 }, NULL },
	};
	char text[120];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool is_short = space_is_short(&cases[i].need, &cases[i].have, text, sizeof(text));

		assert_int_equal(is_short, cases[i].text != NULL);
		if (is_short)
			assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_not_slow),
		cmocka_unit_test(test_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
