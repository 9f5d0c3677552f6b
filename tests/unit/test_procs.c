/* SPDX-License-Identifier: MIT */
/* test_procs.c - a process is signalled whatever the kernel lets us do. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/base/procs.h"
#include "tests/unit/forbid.h"

/* 0: a process that is there was signalled, and one that is gone was not. */
static int signal_a_child(void)
{
	struct proc_name name;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (proc_name_of(pid, &name) < 0)
		return 1;
	if (proc_signal(&name, SIGUSR1) < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return 2;
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGUSR1)
		return 3;
	return proc_signal(&name, SIGUSR1) == 0 ? 4 : 0;
}

/* Linux before 5.3 does not know pidfd_open, filters of older containers say EPERM of what they do
 * not know, and a process may have no descriptor left for it. */
static void test_signal_without_pidfd(void **state)
{
	static const unsigned errors[] = { 0, ENOSYS, EPERM, EMFILE };
	int status;

	(void)state;
	for (size_t i = 0; i < COUNT(errors); i++) {
		pid_t child = fork();

		if (child == 0) {
			if (errors[i])
				forbid(__NR_pidfd_open, errors[i]);
			_exit(signal_a_child());
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signal_without_pidfd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
