/* SPDX-License-Identifier: MIT */
/* test_lbrun_ending.c - every way in which a trainer can end, and what it counts as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "worker/lbrun/end/ending.h"
#include "worker/lbrun/complaints/complaints.h"

#define EXITED(code) ((code) << 8)
#define KILLED(signo) (signo)

static const struct complaint killed_loader = {
	.text = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.",
	.weight = WEIGHT_KNOWN,
	.rank = -1
};
static const struct complaint broken_pool = {
	.text = "concurrent.futures.process.BrokenProcessPool: A process in the process pool was "
		"terminated abruptly while the future was running or pending.",
	.weight = WEIGHT_EXCEPTION,
	.rank = -1
};

static const struct complaint closed_pipe = {
	.text = "ConnectionResetError: [Errno 104] Connection reset by peer",
	.weight = WEIGHT_FOLLOWS,
	.rank = -1
};

static const struct rank_end nobody = { .exit_code = -1, .rank = -1 };
static const struct rank_end failed = { .is_known = true, .exit_code = 7, .rank = 1 };
static const struct rank_end local = {
	.is_known = true, .exit_code = -1, .signal = SIGKILL, .rank = 1, .is_local = true
};
static const struct rank_end ordered = {
	.is_known = true, .exit_code = -1, .signal = SIGKILL, .is_ordered = true
};
static const struct rank_end ended = { .is_known = true, .exit_code = 128 + SIGTERM, .rank = 1 };

/* clang-format off */
static const struct {
	struct launch_facts facts;
	enum cause cause;
	int exit_code, signal, status;
} endings[] = {
	{{.wait_status = EXITED(0)}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(3)}, CAUSE_ERROR, 3, 0, 3},
	{{.wait_status = EXITED(255)}, CAUSE_ERROR, 255, 0, 255},
	{{.wait_status = KILLED(SIGSEGV)}, CAUSE_CRASH, -1, SIGSEGV, 139},
	{{.wait_status = KILLED(SIGKILL)}, CAUSE_CRASH, -1, SIGKILL, 137},
	{{.wait_status = KILLED(SIGKILL), .oom = true}, CAUSE_OOM, -1, SIGKILL, 137},
	{{.wait_status = EXITED(137), .oom = true}, CAUSE_OOM, 137, 0, 137},
	{{.wait_status = EXITED(1), .oom = true}, CAUSE_ERROR, 1, 0, 1},
	/* a shell stood around it, or a container; a program in Python, as pdm run is */
	{{.wait_status = EXITED(137)}, CAUSE_CRASH, 137, 0, 137},
	{{.wait_status = EXITED(139)}, CAUSE_CRASH, 139, 0, 139},
	{{.wait_status = EXITED(143)}, CAUSE_ERROR, 143, 0, 143},
	{{.wait_status = EXITED(192)}, CAUSE_ERROR, 192, 0, 192},
	{{.wait_status = EXITED(256 - SIGKILL)}, CAUSE_CRASH, 247, 0, 247},
	{{.wait_status = EXITED(256 - SIGSEGV)}, CAUSE_CRASH, 245, 0, 245},
	{{.wait_status = EXITED(256 - SIGTERM)}, CAUSE_ERROR, 241, 0, 241},
	{{.wait_status = EXITED(256 - SIGKILL), .oom = true}, CAUSE_OOM, 247, 0, 247},
	{{.wait_status = EXITED(256 - SIGKILL), .peak_mb = 950, .limit_mb = 1000}, CAUSE_OOM, 247, 0, 247},
	{{.wait_status = EXITED(256 - SIGSEGV), .oom = true}, CAUSE_CRASH, 245, 0, 245},
	/* a process that it had started */
	{{.wait_status = EXITED(1), .oom = true, .complaint = &killed_loader}, CAUSE_OOM, 1, 0, 1},
	{{.wait_status = EXITED(1), .oom = true, .complaint = &broken_pool}, CAUSE_OOM, 1, 0, 1},
	{{.wait_status = EXITED(1), .oom = true, .complaint = &closed_pipe}, CAUSE_OOM, 1, 0, 1},
	{{.wait_status = EXITED(1), .complaint = &closed_pipe}, CAUSE_ERROR, 1, 0, 1},
	{{.wait_status = EXITED(1), .complaint = &killed_loader}, CAUSE_ERROR, 1, 0, 1},
	{{.wait_status = EXITED(0), .oom = true, .complaint = &killed_loader}, CAUSE_COMPLETED, 0, 0, 0},
	/* figures at death are evidence only when they are at the limit, and only of a SIGKILL */
	{{.wait_status = KILLED(SIGKILL), .peak_mb = 950, .limit_mb = 1000}, CAUSE_OOM, -1, SIGKILL, 137},
	{{.wait_status = KILLED(SIGKILL), .peak_mb = 949, .limit_mb = 1000}, CAUSE_CRASH, -1, SIGKILL, 137},
	{{.wait_status = KILLED(SIGKILL), .peak_mb = 950}, CAUSE_CRASH, -1, SIGKILL, 137},
	{{.wait_status = KILLED(SIGSEGV), .peak_mb = 999, .limit_mb = 1000}, CAUSE_CRASH, -1, SIGSEGV, 139},
	{{.wait_status = EXITED(1), .peak_mb = 999, .limit_mb = 1000}, CAUSE_ERROR, 1, 0, 1},
	/* it says itself that it did not finish */
	{{.wait_status = EXITED(0), .said_stopped = true}, CAUSE_LOST, 0, 0, 143},
	{{.wait_status = EXITED(2), .said_stopped = true}, CAUSE_ERROR, 2, 0, 2},
	/* srun ended it, and nobody said why */
	{{.wait_status = EXITED(0), .stop = STOP_LEFT_OVER}, CAUSE_CRASH, 0, 0, 143},
	{{.wait_status = EXITED(143), .stop = STOP_LEFT_OVER}, CAUSE_ERROR, 143, 0, 143},
	/* asked to end: exit 0 is no completion, whatever it says */
	{{.wait_status = EXITED(0), .stop = STOP_ORDERED}, CAUSE_KILLED, 0, 0, 143},
	{{.wait_status = KILLED(SIGKILL), .stop = STOP_ORDERED}, CAUSE_KILLED, -1, SIGKILL, 137},
	{{.wait_status = EXITED(0), .stop = STOP_ORDERED, .goes_on = true}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = KILLED(SIGKILL), .stop = STOP_ORDERED, .goes_on = true}, CAUSE_PREEMPTED, -1, SIGKILL, 137},
	{{.wait_status = EXITED(0), .stop = STOP_HUNG, .goes_on = true}, CAUSE_HANG, 0, 0, 143},
	{{.wait_status = KILLED(SIGSEGV), .stop = STOP_ORDERED}, CAUSE_KILLED, -1, SIGSEGV, 139},
	{{.wait_status = EXITED(0), .stop = STOP_SIGNALLED}, CAUSE_LOST, 0, 0, 143},
	{{.wait_status = EXITED(0), .stop = STOP_FENCED}, CAUSE_LOST, 0, 0, 143},
	{{.wait_status = EXITED(0), .stop = STOP_HUNG}, CAUSE_HANG, 0, 0, 143},
	{{.wait_status = KILLED(SIGKILL), .stop = STOP_HUNG}, CAUSE_HANG, -1, SIGKILL, 137},
	{{.wait_status = EXITED(0), .stop = STOP_WARNED}, CAUSE_TIMEOUT, 0, 0, 143},
	{{.wait_status = EXITED(1), .stop = STOP_WARNED}, CAUSE_TIMEOUT, 1, 0, 1},
	{{.wait_status = KILLED(SIGTERM), .stop = STOP_WARNED}, CAUSE_TIMEOUT, -1, SIGTERM, 143},
	/* a script that asks to be requeued has not completed, whatever its status */
	{{.wait_status = EXITED(0), .requeue_asked = true, .warned = true}, CAUSE_TIMEOUT, 0, 0, 143},
	{{.wait_status = EXITED(0), .requeue_asked = true}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = EXITED(1), .requeue_asked = true}, CAUSE_PREEMPTED, 1, 0, 1},
	{{.wait_status = EXITED(0), .requeue_asked = true, .stop = STOP_ORDERED}, CAUSE_KILLED, 0, 0, 143},
	{{.wait_status = KILLED(SIGTERM), .requeue_asked = true, .stop = STOP_REQUEUED}, CAUSE_PREEMPTED, -1, SIGTERM, 143},
	/* one that submits itself again goes on as long as it finds something to do */
	{{.wait_status = EXITED(0), .submitted_itself = true, .warned = true}, CAUSE_TIMEOUT, 0, 0, 143},
	{{.wait_status = EXITED(143), .submitted_itself = true, .warned = true}, CAUSE_TIMEOUT, 143, 0, 143},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 60000}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 59999}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(1), .submitted_itself = true, .lasted_ms = 60000}, CAUSE_ERROR, 1, 0, 1},
	/* … and its trainer has neither failed nor left steps, however soon it is over */
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 59999, .has_steps_left = true, .has_come_further = true}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 59999, .has_steps_left = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 59999, .rank_end = &failed, .end_is_last = true}, CAUSE_ERROR, 7, 0, 7},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 60000, .rank_end = &failed, .end_is_last = true}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 59999, .has_raised = true}, CAUSE_ERROR, 0, 0, 143},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 59999, .has_broken_off = true, .has_steps_left = true, .has_come_further = true}, CAUSE_ERROR, 0, 0, 143},
	{{.wait_status = EXITED(0), .has_raised = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .submitted_itself = true, .lasted_ms = 60000, .stop = STOP_ORDERED}, CAUSE_KILLED, 0, 0, 143},
	{{.wait_status = KILLED(SIGSEGV), .stop = STOP_WARNED}, CAUSE_CRASH, -1, SIGSEGV, 139},
	/* warned of the limit, by a signal that reaches lbrun, too, or its ranks alone */
	{{.wait_status = EXITED(1), .warned = true}, CAUSE_TIMEOUT, 1, 0, 1},
	{{.wait_status = KILLED(SIGUSR1), .warned = true}, CAUSE_TIMEOUT, -1, SIGUSR1, 138},
	{{.wait_status = EXITED(140)}, CAUSE_TIMEOUT, 140, 0, 140},
	{{.wait_status = EXITED(0), .warned = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(139), .warned = true}, CAUSE_CRASH, 139, 0, 139},
	{{.wait_status = EXITED(256 - SIGUSR2)}, CAUSE_ERROR, 244, 0, 244},
	{{.wait_status = EXITED(139), .stop = STOP_WARNED}, CAUSE_CRASH, 139, 0, 139},
	/* status 0 of an echo behind it, or of the tee that it wrote into */
	{{.wait_status = EXITED(0), .rank_end = &failed, .end_is_last = true}, CAUSE_ERROR, 7, 0, 7},
	{{.wait_status = EXITED(0), .rank_end = &failed}, CAUSE_COMPLETED, 0, 0, 0},
	/* a server's, perhaps */
	{{.wait_status = EXITED(0), .rank_end = &failed, .end_is_last = true, .is_doubtful = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .rank_end = &failed, .end_is_last = true, .is_doubtful = true, .has_raised = true}, CAUSE_ERROR, 7, 0, 7},
	{{.wait_status = EXITED(0), .rank_end = &ended, .end_is_last = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .rank_end = &failed, .end_is_last = true, .warned = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .rank_end = &failed, .end_is_last = true, .requeue_asked = true}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = EXITED(0), .rank_end = &failed, .end_is_last = true, .stop = STOP_ORDERED}, CAUSE_KILLED, 0, 0, 143},
	/* it saved at the warning, and has more to do; not where it found nothing to do */
	{{.wait_status = EXITED(0), .warned = true, .has_steps_left = true, .has_come_further = true}, CAUSE_TIMEOUT, 0, 0, 143},
	{{.wait_status = EXITED(0), .warned = true, .has_steps_left = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .warned = true, .has_come_further = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .has_steps_left = true, .has_come_further = true}, CAUSE_COMPLETED, 0, 0, 0},
	/* Slurm asked its steps to end, whatever they made of it */
	{{.wait_status = EXITED(0), .preempted = true}, CAUSE_PREEMPTED, 0, 0, 143},
	{{.wait_status = EXITED(143), .preempted = true}, CAUSE_PREEMPTED, 143, 0, 143},
	{{.wait_status = EXITED(0), .preempted = true, .stop = STOP_ORDERED}, CAUSE_KILLED, 0, 0, 143},
	/* a monitor that the script ended; it may have been the trainer */
	{{.wait_status = EXITED(0), .rank_end = &ordered, .end_is_last = true}, CAUSE_COMPLETED, 0, 0, 0},
	{{.wait_status = EXITED(0), .rank_end = &ordered, .end_is_last = true, .has_steps_left = true}, CAUSE_CRASH, -1, SIGKILL, 137},
	{{.wait_status = EXITED(124), .rank_end = &ordered, .end_is_last = true, .has_steps_left = true}, CAUSE_ERROR, 124, 0, 124},
	{{.wait_status = EXITED(0), .rank_end = &nobody, .has_broken_off = true}, CAUSE_ERROR, 0, 0, 143},
	{{.wait_status = EXITED(0), .rank_end = &nobody, .has_broken_off = true, .oom = true}, CAUSE_OOM, 0, 0, 143},
};
/* clang-format on */

static void test_endings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		struct launch_facts facts = endings[i].facts;
		struct ending end;

		facts.stop_text = "asked";
		ending_decide(&facts, &end);
		if (end.cause != endings[i].cause)
			print_message("row %zu\n", i);
		assert_int_equal(end.cause, endings[i].cause);
		assert_int_equal(end.exit_code, endings[i].exit_code);
		assert_int_equal(end.signal, endings[i].signal);
		assert_int_equal(ending_exit_status(&end), endings[i].status);
		assert_true(end.text[0] != '\0');
	}
}

/* The last line of stderr may be why a trainer ended with a status, never why it was killed. */
static void test_last_line(void **state)
{
	const struct complaint last = { .weight = WEIGHT_LAST, .rank = -1, .text = "odd words" };
	struct launch_facts facts = { .wait_status = KILLED(SIGKILL), .complaint = &last };
	struct ending end;

	(void)state;
	ending_decide(&facts, &end);
	assert_string_equal(end.text, "killed by signal 9 (SIGKILL)");
	facts.wait_status = EXITED(3);
	ending_decide(&facts, &end);
	assert_string_equal(end.text, "exit status 3; odd words");
	facts.wait_status = EXITED(137); /* of who ran it */
	ending_decide(&facts, &end);
	assert_string_equal(end.text, "exit status 137 (SIGKILL)");
}

static enum cause cause_of_exit(int code)
{
	static const int crashes[] = { SIGKILL, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS };

	if (code == 128 + SIGUSR1 || code == 128 + SIGUSR2)
		return CAUSE_TIMEOUT;
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (code == 128 + crashes[i] || code == 256 - crashes[i])
			return CAUSE_CRASH;
	return CAUSE_ERROR;
}

static void test_every_exit_status(void **state)
{
	(void)state;
	for (int code = 1; code <= 255; code++) {
		struct launch_facts facts = { .wait_status = EXITED(code) };
		struct ending end;

		ending_decide(&facts, &end);
		assert_int_equal(end.cause, cause_of_exit(code));
		assert_int_equal(end.exit_code, code);
	}
}

static void test_without_trainer(void **state)
{
	struct ending end;

	(void)state;
	ending_without_trainer(STOP_ORDERED, false, "kill ordered", &end);
	assert_int_equal(end.cause, CAUSE_KILLED);
	assert_string_equal(end.text, "kill ordered; the trainer was not running");
	ending_without_trainer(STOP_WARNED, false, "limit", &end);
	assert_int_equal(end.cause, CAUSE_TIMEOUT);
	ending_without_trainer(STOP_ORDERED, true, "stop ordered", &end);
	assert_int_equal(end.cause, CAUSE_PREEMPTED);
}

static bool again(enum cause cause, int exit_code, int64_t in_place, int64_t failures)
{
	static int64_t never[] = { 7, 9 };
	struct attempt_params params = { .in_place = in_place,
					 .max_without_progress = -1,
					 .never_on_exit_codes = never,
					 .never_count = 2 };
	struct ending end = { .cause = cause, .exit_code = exit_code };

	return ending_may_relaunch(&end, &params, failures, false);
}

static void test_relaunch(void **state)
{
	(void)state;
	assert_true(again(CAUSE_ERROR, 1, 2, 1));
	assert_true(again(CAUSE_CRASH, -1, 2, 2));
	assert_true(again(CAUSE_OOM, -1, 2, 0));
	assert_true(again(CAUSE_HANG, -1, 2, 1));
	assert_true(again(CAUSE_NODE_FAIL, -1, 2, 0)); /* where a spare has the node's place */
	assert_false(again(CAUSE_ERROR, 1, 2, 3));
	assert_false(again(CAUSE_ERROR, 9, 2, 1));
	assert_false(again(CAUSE_ERROR, 7, 2, 0));
	/* 0 means: never in place, progress or not */
	assert_false(again(CAUSE_ERROR, 1, 0, 0));
	for (int cause = 0; cause < CAUSE_COUNT; cause++) {
		if (cause != CAUSE_ERROR && cause != CAUSE_CRASH && cause != CAUSE_OOM &&
		    cause != CAUSE_HANG && cause != CAUSE_NODE_FAIL)
			assert_false(again((enum cause)cause, 1, 5, 0));
	}
}

/* The launch that uses the run's budget up is the last one of its attempt. */
static void test_budget(void **state)
{
	static const struct {
		int64_t before, failures, max;
		bool made_progress, may;
	} rows[] = {
		{ 0, 2, 3, false, true }, { 0, 3, 3, false, false }, { 2, 1, 3, false, false },
		{ 2, 1, 3, true, true },  { 5, 3, 3, true, false },  { 1, 1, 3, false, true },
		{ 0, 0, 3, true, true },  { 0, 1, 0, false, false }, { 9, 9, -1, false, true },
	};
	struct ending end = { .cause = CAUSE_CRASH, .exit_code = -1 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct attempt_params params = { .in_place = 100,
						 .without_progress = rows[i].before,
						 .max_without_progress = rows[i].max };

		if (ending_may_relaunch(&end, &params, rows[i].failures, rows[i].made_progress) !=
		    rows[i].may)
			fail_msg("row %zu", i);
	}
}

/* The first rank that ended says what it was, srun only that something was. */
static void test_ends_of_ranks(void **state)
{
	const struct rank_end killed = { .is_known = true,
					 .exit_code = -1,
					 .signal = SIGKILL,
					 .rank = 2,
					 .node = "n2",
					 .is_first_hand = true };
	const struct rank_end without = { .is_known = true,
					  .exit_code = -1,
					  .signal = SIGKILL,
					  .rank = 3,
					  .node = "n2",
					  .oom = true,
					  .is_first_hand = true };
	const struct rank_end shell = { .is_known = true, .exit_code = 139, .rank = 1 };
	const struct complaint late = { .text = "lbworker: rank 3 on n2 did not begin within 3 s",
					.rank = 0,
					.node = "n1",
					.weight = WEIGHT_FOLLOWS };
	const struct complaint away = {
		.text = "srun: error: Task launch for StepId=22.1 failed on "
			"node n3: Communication connection failure",
		.weight = WEIGHT_KNOWN
	};
	struct complaint port = { .text = "OSError: [Errno 98] Address already in use",
				  .rank = -1,
				  .weight = WEIGHT_KNOWN,
				  .is_outside = true };
	const struct complaint lost = { .text = "PRTE has lost communication with a remote daemon.",
					.rank = -1,
					.weight = WEIGHT_EXCEPTION };
	const struct complaint own = { .text = "RuntimeError: all_reduce failed on node gpu07",
				       .weight = WEIGHT_EXCEPTION };
	struct launch_facts facts = { .wait_status = EXITED(137),
				      .rank_end = &killed,
				      .oom = true };
	struct ending end;

	(void)state;
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_OOM);
	assert_non_null(strstr(end.text, "rank 2 on n2: killed by signal 9"));
	assert_false(end.is_early);

	/* an srun that could not end the others was ended itself */
	facts = (struct launch_facts){ .wait_status = KILLED(SIGKILL),
				       .stop = STOP_LEFT_OVER,
				       .rank_end = &killed };
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_CRASH);
	assert_non_null(strstr(end.text, "rank 2 on n2: killed by signal 9"));

	/* lbrun's own control group knows nothing of a rank's on another node */
	facts = (struct launch_facts){ .wait_status = EXITED(137), .rank_end = &without };
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_OOM);
	assert_string_equal(
		end.text,
		"rank 3 on n2: killed by signal 9 (SIGKILL): the kernel ran out of memory for it");

	/* what others said because of that explains nothing */
	facts.complaint = &late;
	ending_decide(&facts, &end);
	assert_null(strstr(end.text, "did not begin"));

	facts = (struct launch_facts){ .wait_status = EXITED(1), .complaint = &late };
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_ERROR);
	assert_non_null(strstr(end.text, "rank 3 on n2 did not begin"));
	assert_true(end.is_early);

	/* a node that srun cannot reach; the ranks elsewhere it has killed itself */
	facts = (struct launch_facts){ .wait_status = EXITED(137),
				       .rank_end = &killed,
				       .complaint = &away };
	ending_decide(&facts, &end);
	assert_null(strstr(end.text, "rank 2 on n2"));
	assert_non_null(strstr(end.text, "failed on node n3"));
	assert_true(end.is_early);

	/* any checkpoint would have met a taken port; a line that was survived says nothing */
	facts = (struct launch_facts){ .wait_status = EXITED(1), .complaint = &port };
	ending_decide(&facts, &end);
	assert_true(end.is_early);
	port.weight = WEIGHT_EVERYDAY;
	ending_decide(&facts, &end);
	assert_false(end.is_early);
	port.weight = WEIGHT_KNOWN;
	facts.wait_status = KILLED(SIGSEGV);
	ending_decide(&facts, &end);
	assert_false(end.is_early);

	/* a trainer that has such words of its own has begun */
	facts = (struct launch_facts){ .wait_status = EXITED(137), .rank_end = &killed };
	facts.complaint = &own;
	ending_decide(&facts, &end);
	assert_non_null(strstr(end.text, "rank 2 on n2: killed by signal 9"));
	assert_false(end.is_early);

	/* behind what makes a status of it */
	facts = (struct launch_facts){ .wait_status = EXITED(247) };
	ending_decide(&facts, &end);
	assert_string_equal(end.text, "exit status 247 (SIGKILL)");

	facts = (struct launch_facts){ .wait_status = EXITED(1), .rank_end = &shell };
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_CRASH);
	assert_string_equal(end.text, "rank 1: exit status 139 (SIGSEGV)");

	/* of several nodes with torchrun */
	facts = (struct launch_facts){ .wait_status = EXITED(1), .rank_end = &local };
	ending_decide(&facts, &end);
	assert_string_equal(end.text, "local rank 1: killed by signal 9 (SIGKILL)");

	/* an echo came behind it */
	facts = (struct launch_facts){ .rank_end = &killed, .end_is_last = true };
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_CRASH);
	assert_string_equal(end.text, "rank 2 on n2: killed by signal 9 (SIGKILL), though its "
				      "script ended with status 0 (set -e -o pipefail)");

	/* Open MPI 5, of a daemon that it had on another node */
	facts = (struct launch_facts){ .has_lost_node = true, .complaint = &lost };
	ending_decide(&facts, &end);
	assert_int_equal(end.cause, CAUSE_ERROR);
	assert_string_equal(end.text,
			    "it broke off, though its launcher ended with status 0; PRTE has "
			    "lost communication with a remote daemon.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_line),
		cmocka_unit_test(test_endings),
		cmocka_unit_test(test_every_exit_status),
		cmocka_unit_test(test_without_trainer),
		cmocka_unit_test(test_relaunch),
		cmocka_unit_test(test_ends_of_ranks),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
