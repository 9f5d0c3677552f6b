/* SPDX-License-Identifier: MIT */
/* test_lbrun_srun_words.c - what srun itself says of the step that it runs. */
#include "tests/unit/unit.h"

#include "worker/lbrun/complaints/srun_words.h"

static const char *unreached(const char *line, int64_t rank)
{
	const struct heard heard = { line, strlen(line), "", rank, true, 0 };
	const char *node = srun_words_unreached(&heard);

	return node;
}

static void test_unreached(void **state)
{
	static const char gone[] =
		"srun: error: Task launch for StepId=22.1 failed on node gpu-07: "
		"Communication connection failure";

	(void)state;
	assert_memory_equal(unreached(gone, -1), "gpu-07:", 7);
	assert_null(unreached(gone, 0)); /* of a script's srun, or in a trainer's log */
	assert_null(unreached(gone + 1, -1));
	assert_null(unreached(
		"srun: error: Task launch for StepId=22.1 failed on node n2: Job prolog failed",
		-1));
	assert_null(unreached("srun: error: Task launch for StepId=22.1 failed on node", -1));
}

static bool says_end(const char *line, int64_t rank)
{
	return srun_words_end_step(&(struct heard){ line, strlen(line), "", rank, true, 0 });
}

static void test_srun_ends(void **state)
{
	(void)state;
	assert_true(says_end("srun: launch/slurm: _step_signal: Terminating StepId=7.0", -1));
	assert_true(says_end(
		"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", -1));
	assert_false(says_end("srun: Job step aborted: a trainer's own srun", 0));
	assert_false(says_end("srun: error: n2: task 1: Exited with exit code 5", -1));
	assert_false(says_end("Terminating StepId=7.0", -1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unreached),
		cmocka_unit_test(test_srun_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
