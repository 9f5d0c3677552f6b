/* SPDX-License-Identifier: MIT */
/* test_failpoint.c - a point acts when it is its turn, and once where it shall. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/mem.h"

static int init(const char *text, struct err *err)
{
	*err = (struct err){ 0 };
	if (text)
		setenv("LB_FAILPOINT", text, 1);
	else
		unsetenv("LB_FAILPOINT");
	return failpoint_init("lbd", err);
}

static void test_quiet(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(init(NULL, &err), 0);
	assert_false(failpoint_armed);
	for (int i = 0; i < FP_COUNT; i++)
		assert_int_equal(failpoint((enum failpoint)i, &err), 0);
	assert_int_equal(init("claim.before:kill,exit.before:error", &err), 0);
	assert_false(failpoint_armed); /* those are lbrun's */
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "nowhere:kill", "no such point" },
		{ "intent.written", "must be NAME:ACTION" },
		{ "intent.written:", "the action must be" },
		{ "intent.written:killed", "the action must be" },
		{ "intent.written:kill@0", "the action must be" },
		{ "intent.written:kill@x", "the action must be" },
		{ "intent.written:delay:", "the action must be" },
		{ "intent.written:delay:5", "the action must be" },
		{ "intent.written:delay:-5ms", "the action must be" },
		{ "intent.committed:error", "cannot fail" },
		{ "intent.written:kill,nowhere:kill", "no such point" },
		{ "claim.taken:error", "cannot fail" }, /* also where it is another program's */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err;

		assert_int_equal(init(cases[i].text, &err), -1);
		assert_int_equal(err.code, ERR_USAGE);
		assert_non_null(strstr(err.text, cases[i].part));
	}
}

static void test_error(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(init("job.written:error@2,run.folder:error", &err), 0);
	assert_int_equal(failpoint(FP_JOB_WRITTEN, &err), 0);
	assert_int_equal(failpoint(FP_JOB_WRITTEN, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	assert_string_equal(err.text, "failpoint job.written");
	assert_int_equal(failpoint(FP_JOB_WRITTEN, NULL), 0);
	assert_int_equal(failpoint(FP_RUN_FOLDER, NULL), -1);
	assert_int_equal(failpoint(FP_RUN_WRITTEN, NULL), 0);
}

static void test_delay(void **state)
{
	struct err err;
	int64_t begun_ms;

	(void)state;
	assert_int_equal(init("submit.call:delay:30ms", &err), 0);
	begun_ms = clock_mono_ms();
	assert_int_equal(failpoint(FP_SUBMIT_CALL, &err), 0);
	assert_true(clock_mono_ms() - begun_ms >= 30);
}

static void test_kill(void **state)
{
	struct err err;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(init("submit.answer:kill", &err), 0);
	pid = fork();
	if (pid == 0) {
		failpoint(FP_SUBMIT_ANSWER, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Among all processes that come by, and the folder tells that it was. */
static void test_once(void **state)
{
	char folder[] = "/tmp/lb-failpoint.XXXXXX", *mark;
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	mark = xasprintf("%s/job.written", folder);
	setenv("LB_FAILPOINT_ONCE", folder, 1);
	for (int process = 0; process < 3; process++) {
		assert_int_equal(init("job.written:error", &err), 0);
		assert_int_equal(file_exists(mark), process > 0);
		assert_int_equal(failpoint(FP_JOB_WRITTEN, NULL), process == 0 ? -1 : 0);
	}
	unsetenv("LB_FAILPOINT_ONCE");
	assert_int_equal(folder_remove(folder, NULL), 0);
	free(mark);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quiet), cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_error), cmocka_unit_test(test_delay),
		cmocka_unit_test(test_kill),  cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
