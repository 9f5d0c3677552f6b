/* SPDX-License-Identifier: MIT */
/* beside.c - two forks, and all descriptors let go. */
#include "worker/lbrun/end/beside.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 }; /* that may have come from our parent */

static bool is_kept(int fd, const int *keep, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keep[i] == fd)
			return true;
	return false;
}

/* Nothing of the parent's is held open: pipes of a trainer, locks, the journal. */
static void let_go(const int *keep, size_t keep_count)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
		dup2(null, fd);
	for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS; fd++)
		if (!is_kept(fd, keep, keep_count))
			close(fd);
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	/* what ends a job's processes politely is for the trainer */
	for (const int *signo = (const int[]){ SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2,
					       SIGPIPE, 0 };
	     *signo; signo++)
		signal(*signo, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool beside_begin(const char *name, const int *keep, size_t keep_count)
{
	pid_t child = fork();

	if (child == 0) {
		if (fork() != 0)
			_exit(0);
		let_go(keep, keep_count);
		prctl(PR_SET_NAME, name);
		return true;
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	return false;
}
