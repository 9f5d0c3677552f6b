/* SPDX-License-Identifier: MIT */
/* test_ranks.c - whose cores are whose, among ranks that a launcher has placed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "worker/lbworker/ranks/ranks.h"

enum { RANKS = 4, CORES = 4 };

static struct ranks_place place(const char *node, int first, int count)
{
	struct ranks_place p = { 0 };

	snprintf(p.node, sizeof(p.node), "%s", node);
	for (int cpu = first; cpu < first + count; cpu++)
		CPU_SET(cpu, &p.cpus);
	return p;
}

static void expect(const struct ranks_place *all, int rank, int beside, int sharing)
{
	struct ranks r = { .rank = rank, .size = RANKS };

	ranks_count_places(&r, all);
	assert_int_equal(r.beside, beside);
	assert_int_equal(r.sharing, sharing);
	if (sharing == 1)
		assert_int_equal(ranks_threads(&r), 0); /* all that it may run on */
}

/* srun and mpiexec bind ranks or do not, and nodes have as many of them as they have room for. */
static void test_places(void **state)
{
	const struct ranks_place free[RANKS] = { place("a", 0, CORES), place("b", 0, CORES),
						 place("b", 0, CORES), place("b", 0, CORES) };
	const struct ranks_place bound[RANKS] = { place("a", 0, 2), place("a", 2, 2),
						  place("b", 0, 2), place("b", 2, 2) };
	const struct ranks_place pairs[RANKS] = { place("a", 0, 2), place("a", 0, 2),
						  place("a", 2, 2), place("a", 2, 2) };

	(void)state;
	expect(free, 0, 1, 1);
	for (int r = 1; r < RANKS; r++)
		expect(free, r, 3, 3);
	for (int r = 0; r < RANKS; r++) {
		expect(bound, r, 2, 1);
		expect(pairs, r, 4, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
