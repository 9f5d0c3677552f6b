/* SPDX-License-Identifier: MIT */
/* test_rank_threads.c - how many threads a rank has: of cores that it shares its part, of its own
 * all. */
#include "kernels/machine/cpus.h"
#include "tests/unit/unit.h"
#include "worker/lbworker/ranks/ranks.h"

static void test_bound(void **state)
{
	/* as srun tells them: who has our mask, of `beside` tasks of which we are number `place` */
	static const struct {
		const char *masks, *place;
		int beside, sharing;
	} cases[] = {
		{ NULL, "1", 2, 2 },
		{ "", "1", 2, 2 }, /* --cpu-bind=none */
		{ "0x3,0xC", "0", 2, 1 },
		{ "0x3,0xC", "1", 2, 1 },
		{ "0x3,0xC,0x3,0xC", "2", 4, 2 },
		{ "0x3", "3", 4, 4 }, /* one for all */
		{ "0xF,0xF0,0xF", "1", 3, 1 },
		{ "0x1,0x11", "0", 2, 1 },
		{ "0x3,0xC,0x30", "2", 2, 1 }, /* another node has two tasks */
	};
	int cores = (int)cpus_granted();

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ranks r = { .size = 4, .beside = cases[i].beside };
		const struct ranks forked = { .size = 4, .beside = 2, .table = &comm_shared };
		int ours = cores / cases[i].sharing, half = cores / 2;
		unsetenv("SLURM_CPU_BIND_LIST");
		if (cases[i].masks)
			setenv("SLURM_CPU_BIND_LIST", cases[i].masks, 1);
		setenv("SLURM_LOCALID", cases[i].place, 1);
		if (ranks_threads(&r) != (ours > 0 ? ours : 1))
			fail_msg("%s, task %s of %d: %d threads on %d cores",
				 cases[i].masks ? cases[i].masks : "-", cases[i].place,
				 cases[i].beside, ranks_threads(&r), cores);
		assert_int_equal(ranks_threads(&forked), half > 0 ? half : 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
