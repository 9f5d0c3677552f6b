/* SPDX-License-Identifier: MIT */
/* test_job_result.c - every row of what Slurm was seen to say of a job, and what we make of
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "slurm/job_result.h"

/* clang-format off */
static const struct row {
	const char *what;
	struct slurm_word word;
	enum job_phase phase;
	enum cause cause;
	int exit_code, signal;
	const char *state, *reason;
} rows[] = {
	{ "held by us", { 0, 16, 0, true }, JOB_HELD, CAUSE_NONE, -1, 0, "PENDING", "JobHeldUser" },
	{ "held by root", { 0, 8, 0, true }, JOB_HELD, CAUSE_NONE, -1, 0, "PENDING", "JobHeldAdmin" },
	{ "waits", { 0, 3, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "PENDING", "Resources" },
	{ "waits for something rare", { 0, 171, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "PENDING",
	  "MaxGRESPerAccount" },
	{ "requeued", { 0, 9, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "PENDING", "BeginTime" },
	{ "requeued and held", { 0, 16, 0, true }, JOB_HELD, CAUSE_NONE, -1, 0, "PENDING", "JobHeldUser" },
	{ "too large for the partition", { 0, 4, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "PENDING",
	  "PartitionNodeLimit" },
	{ "requeued, not yet free", { 0x8000, 0, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "PENDING", "" },
	{ "nodes boot", { 0x4001, 0, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "RUNNING", "Configuring" },
	{ "runs", { 1, 0, 0, false }, JOB_RUNNING, CAUSE_NONE, -1, 0, "RUNNING", "" },
	{ "suspended", { 2, 0, 0, false }, JOB_RUNNING, CAUSE_NONE, -1, 0, "SUSPENDED", "Suspended" },
	{ "exit 0", { 3, 0, 0, false }, JOB_ENDED, CAUSE_COMPLETED, 0, 0, "COMPLETED", "" },
	/* derived_ec tells of the step, exit_code does not: only lbrun's record says completed */
	{ "a step dies, the script exits 0", { 3, 0, 0, false }, JOB_ENDED, CAUSE_COMPLETED, 0, 0,
	  "COMPLETED", "" },
	{ "no such work_dir: it ran in /tmp", { 3, 0, 0, false }, JOB_ENDED, CAUSE_COMPLETED, 0, 0,
	  "COMPLETED", "" },
	{ "exit 0, completing", { 0x8003, 0, 0, false }, JOB_ENDING, CAUSE_COMPLETED, 0, 0, "COMPLETED", "" },
	{ "completed, yet a status", { 3, 0, 0x100, false }, JOB_ENDED, CAUSE_LOST, 1, 0, "COMPLETED", "" },
	{ "exit 3", { 5, 24, 0x300, false }, JOB_ENDED, CAUSE_ERROR, 3, 0, "FAILED", "NonZeroExitCode" },
	{ "exit 255", { 5, 24, 0xff00, false }, JOB_ENDED, CAUSE_ERROR, 255, 0, "FAILED", "NonZeroExitCode" },
	{ "the handler of the warning exits 9", { 5, 24, 0x900, false }, JOB_ENDED, CAUSE_ERROR, 9, 0,
	  "FAILED", "NonZeroExitCode" },
	/* ENOEXEC and ENOENT of slurmstepd: nothing tells them from a program's own 8 and 2 */
	{ "a script without #!", { 5, 24, 0x800, false }, JOB_ENDED, CAUSE_ERROR, 8, 0, "FAILED",
	  "NonZeroExitCode" },
	{ "a script with #!…CR", { 5, 24, 0x200, false }, JOB_ENDED, CAUSE_ERROR, 2, 0, "FAILED",
	  "NonZeroExitCode" },
	{ "no such command", { 5, 24, 0x7f00, false }, JOB_ENDED, CAUSE_LAUNCH_FAIL, 127, 0, "FAILED",
	  "NonZeroExitCode" },
	{ "not executable", { 5, 24, 0x7e00, false }, JOB_ENDED, CAUSE_LAUNCH_FAIL, 126, 0, "FAILED",
	  "NonZeroExitCode" },
	{ "SIGKILL", { 5, 23, 9, false }, JOB_ENDED, CAUSE_CRASH, -1, 9, "FAILED", "JobLaunchFailure" },
	/* the same numbers, hence no evidence of memory */
	{ "over memory, without cgroups", { 5, 23, 9, false }, JOB_ENDED, CAUSE_CRASH, -1, 9, "FAILED",
	  "JobLaunchFailure" },
	{ "SIGTERM", { 5, 23, 15, false }, JOB_ENDED, CAUSE_CRASH, -1, 15, "FAILED", "JobLaunchFailure" },
	{ "SIGSEGV with core", { 5, 23, 0x8b, false }, JOB_ENDED, CAUSE_CRASH, -1, 11, "FAILED",
	  "JobLaunchFailure" },
	{ "no output file", { 5, 23, 4021, false }, JOB_ENDED, CAUSE_LAUNCH_FAIL, -1, 0, "FAILED",
	  "JobLaunchFailure" },
	{ "not launched", { 5, 23, 0, false }, JOB_ENDED, CAUSE_LAUNCH_FAIL, -1, 0, "FAILED",
	  "JobLaunchFailure" },
	{ "failed, no reason, no status", { 5, 0, 0, false }, JOB_ENDED, CAUSE_LOST, -1, 0, "FAILED", "" },
	{ "failed with an odd number", { 5, 24, 4021, false }, JOB_ENDED, CAUSE_LOST, -1, 0, "FAILED",
	  "NonZeroExitCode" },
	{ "time limit", { 6, 25, 15, false }, JOB_ENDED, CAUSE_TIMEOUT, -1, 15, "TIMEOUT", "TimeLimit" },
	{ "time limit, trap exits 0", { 6, 25, 0, false }, JOB_ENDED, CAUSE_TIMEOUT, -1, 0, "TIMEOUT",
	  "TimeLimit" },
	{ "cancelled running", { 4, 0, 15, false }, JOB_ENDED, CAUSE_KILLED, -1, 15, "CANCELLED", "" },
	{ "cancelled, trap exits 4", { 4, 0, 0x400, false }, JOB_ENDED, CAUSE_KILLED, 4, 0, "CANCELLED", "" },
	{ "cancelled pending", { 4, 3, 0, false }, JOB_ENDED, CAUSE_KILLED, -1, 0, "CANCELLED", "Resources" },
	{ "impossible dependency", { 0, 39, 0, false }, JOB_PENDING, CAUSE_NONE, -1, 0, "PENDING",
	  "DependencyNeverSatisfied" },
	{ "impossible dependency, cancelled by Slurm", { 4, 39, 0, false }, JOB_ENDED, CAUSE_LAUNCH_FAIL,
	  -1, 0, "CANCELLED", "DependencyNeverSatisfied" },
	{ "cancelled held", { 4, 16, 0, true }, JOB_ENDED, CAUSE_KILLED, -1, 0, "CANCELLED", "JobHeldUser" },
	{ "cancelled, completing", { 0x8004, 0, 15, false }, JOB_ENDING, CAUSE_KILLED, -1, 15, "CANCELLED", "" },
	{ "node died", { 7, 20, 0, false }, JOB_ENDED, CAUSE_NODE_FAIL, -1, 0, "NODE_FAIL", "NodeDown" },
	{ "node died after a SIGTERM", { 7, 20, 0xf, false }, JOB_ENDED, CAUSE_NODE_FAIL, -1, 15,
	  "NODE_FAIL", "NodeDown" },
	{ "node died after a task", { 7, 20, 0x8f00, false }, JOB_ENDED, CAUSE_NODE_FAIL, 143, 0, "NODE_FAIL",
	  "NodeDown" },
	{ "node died, completing", { 0x8007, 20, 0, false }, JOB_ENDING, CAUSE_NODE_FAIL, -1, 0,
	  "NODE_FAIL", "NodeDown" },
	{ "preempted, completing", { 0x8008, 0, 15, false }, JOB_ENDING, CAUSE_PREEMPTED, -1, 15,
	  "PREEMPTED", "" },
	{ "time limit, completing", { 0x8006, 25, 15, false }, JOB_ENDING, CAUSE_TIMEOUT, -1, 15,
	  "TIMEOUT", "TimeLimit" },
	{ "preempted", { 8, 0, 15, false }, JOB_ENDED, CAUSE_PREEMPTED, -1, 15, "PREEMPTED", "" },
	{ "node did not boot", { 9, 0, 0, false }, JOB_ENDED, CAUSE_NODE_FAIL, -1, 0, "BOOT_FAIL", "" },
	{ "deadline passed", { 10, 167, 1, false }, JOB_ENDED, CAUSE_TIMEOUT, -1, 0, "DEADLINE", "DeadLine" },
	{ "out of memory", { 11, 0, 0x7d00, false }, JOB_ENDED, CAUSE_OOM, 125, 0, "OUT_OF_MEMORY", "" },
	{ "a state of the future", { 12, 999, 0, false }, JOB_ENDED, CAUSE_LOST, -1, 0, "state 12", "UnknownReason" },
};
/* clang-format on */

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct job_status got = { .exit_code = 77, .signal = 77 };

		slurm_word_judge(&r->word, &got);
		if (got.phase != r->phase || got.cause != r->cause ||
		    got.exit_code != r->exit_code || got.signal != r->signal ||
		    strcmp(got.state, r->state) != 0 || strcmp(got.reason, r->reason) != 0)
			fail_msg("%s: phase %d, %s, exit %d, signal %d, %s, \"%s\"", r->what,
				 got.phase, cause_name(got.cause), got.exit_code, got.signal,
				 got.state, got.reason);
	}
}

/* No number that Slurm might send leads anywhere but to a cause, and ended jobs have one. */
static void test_every_number(void **state)
{
	(void)state;
	for (uint32_t base = 0; base < 20; base++)
		for (uint32_t reason = 0; reason < 60; reason++)
			for (uint32_t code = 0; code < 0x10100; code += 51) {
				struct slurm_word word = { base, reason, code, false };
				struct job_status got;

				slurm_word_judge(&word, &got);
				assert_int_equal(got.cause == CAUSE_NONE, base < SJ_COMPLETE);
				assert_true(got.cause < CAUSE_COUNT);
			}
}

static void test_wait_status(void **state)
{
	int exit_code, signal;

	(void)state;
	assert_int_equal(wait_status_judge(0, &exit_code, &signal), CAUSE_COMPLETED);
	assert_int_equal(exit_code, 0);
	assert_int_equal(wait_status_judge(5 << 8, &exit_code, &signal), CAUSE_ERROR);
	assert_int_equal(exit_code, 5);
	assert_int_equal(wait_status_judge(127 << 8, &exit_code, &signal), CAUSE_LAUNCH_FAIL);
	assert_int_equal(wait_status_judge(9, &exit_code, &signal), CAUSE_CRASH);
	assert_int_equal(signal, 9);
	assert_int_equal(exit_code, -1);
}

struct record {
	uint32_t state, reason;
	bool has_nodes;
	int64_t end_time;
};

/* Records of one array, and the number of that which stands for all. */
static const struct {
	const char *what;
	struct record records[3];
	size_t count, foremost;
} arrays[] = {
	{ "what still runs, not what boots",
	  { { SJ_PENDING, 0, false, 0 },
	    { SJ_RUNNING | SJ_CONFIGURING, 0, true, 0 },
	    { SJ_RUNNING, 0, true, 0 } },
	  3,
	  2 },
	{ "what waits, not what has failed",
	  { { SJ_FAILED, 0, true, 30 }, { SJ_PENDING, 0, false, 0 } },
	  2,
	  1 },
	{ "what waits for something, not for nothing",
	  { { SJ_PENDING, SR_DEPENDENCY_NEVER, false, 0 }, { SJ_PENDING, 0, false, 0 } },
	  2,
	  1 },
	{ "what waits, not what leaves its node",
	  { { SJ_COMPLETE | SJ_COMPLETING, 0, true, 30 }, { SJ_PENDING, 0, false, 0 } },
	  2,
	  1 },
	{ "what leaves its node, not what waits for nothing",
	  { { SJ_PENDING, SR_DEPENDENCY_NEVER, false, 0 },
	    { SJ_FAILED | SJ_COMPLETING, 0, true, 30 } },
	  2,
	  1 },
	{ "what has failed, not what has not",
	  { { SJ_COMPLETE, 0, true, 30 }, { SJ_FAILED, 0, true, 20 } },
	  2,
	  1 },
	{ "of those that one scancel ended the one that waited, though it ended a second before",
	  { { SJ_FAILED, 0, true, 20 },
	    { SJ_CANCELLED, 0, false, 30 },
	    { SJ_CANCELLED, 0, true, 31 } },
	  3,
	  1 },
	{ "not what was cancelled long before others were",
	  { { SJ_CANCELLED, 0, false, 30 }, { SJ_CANCELLED, 0, true, 36 } },
	  2,
	  1 },
	{ "nor what was cancelled before others failed",
	  { { SJ_CANCELLED, 0, false, 30 }, { SJ_FAILED, 0, true, 31 } },
	  2,
	  1 },
	{ "a dependency that never holds is nobody's cancel",
	  { { SJ_CANCELLED, SR_DEPENDENCY_NEVER, false, 30 }, { SJ_CANCELLED, 0, true, 30 } },
	  2,
	  1 },
};

static void test_arrays(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		struct array_ends ends = { 0 };
		size_t best = 0;
		int most = -1;

		for (size_t k = 0; k < arrays[i].count; k++) {
			const struct record *r = &arrays[i].records[k];

			array_ends_add(&ends, r->state, r->reason, r->end_time);
		}
		for (size_t k = 0; k < arrays[i].count; k++) {
			const struct record *r = &arrays[i].records[k];
			int weight = array_record_weight(r->state, r->reason, r->has_nodes,
							 r->end_time, &ends);

			best = weight > most ? k : best;
			most = weight > most ? weight : most;
		}
		if (best != arrays[i].foremost)
			fail_msg("%s: %zu", arrays[i].what, best);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_wait_status),
	};

	return cmocka_run_group_tests_name("slurm endings", tests, NULL, NULL);
}
