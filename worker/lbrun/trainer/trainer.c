/* SPDX-License-Identifier: MIT */
/* trainer.c - forks and execs the trainer.
 *
 * The child reports a failed step through a close-on-exec pipe: its end without a word means that
 * exec succeeded. Between fork and exec only async-signal-safe calls are made. */
#include "worker/lbrun/trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/trainer/core.h"
#include "worker/lbrun/trainer/obstacle.h"

enum failed_step { FAILED_STDIO, FAILED_WORKDIR, FAILED_EXEC };

struct failure {
	enum failed_step step;
	int error;
};

void child_begin(pid_t parent)
{
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	core_allow_again();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Too late for the kernel to tell us? */
	if (getppid() != parent)
		_exit(128 + SIGKILL);
}

static void __attribute__((noreturn)) give_up(int report, enum failed_step step)
{
	struct failure failure = { step, errno };
	ssize_t n = write(report, &failure, sizeof(failure));

	(void)n;
	_exit(127);
}

static int take_stdio(int input, int out, int err)
{
	if (input < 0)
		input = open("/dev/null", O_RDONLY);
	if (input < 0)
		return -1;
	return dup2(input, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ? -1 : 0;
}

static void __attribute__((noreturn))
child(const struct trainer_start *what, int out, int err, int report, pid_t parent)
{
	child_begin(parent);
	setsid();
	if (take_stdio(what->input, out, err) < 0)
		give_up(report, FAILED_STDIO);
	if (what->workdir && chdir(what->workdir) < 0)
		give_up(report, FAILED_WORKDIR);
	execvpe(what->argv[0], what->argv, what->env);
	give_up(report, FAILED_EXEC);
}

/* `obstacle` is taken. */
static int fail(struct err *err, const char *what, const char *path, int error, char *obstacle)
{
	err_set(err, ERR_IO, "cannot %s %s: %s", what, path, obstacle ? obstacle : strerror(error));
	free(obstacle);
	return -1;
}

/* A relative program is named from the working directory, where this process is not. */
static char *obstacle_of(const struct trainer_start *what)
{
	const char *name = what->argv[0];
	char *path = strchr(name, '/') && name[0] != '/' && what->workdir
			     ? path_join("%s/%s", what->workdir, name)
			     : xstrdup(name);
	char *text = obstacle_to_program(path, getenv("PATH"));

	free(path);
	return text;
}

static int explain(const struct trainer_start *what, const struct failure *failure, struct err *err)
{
	switch (failure->step) {
	case FAILED_WORKDIR:
		return fail(err, "change to the working directory", what->workdir, failure->error,
			    obstacle_to_folder(what->workdir));
	case FAILED_EXEC:
		return fail(err, "start", what->argv[0], failure->error, obstacle_of(what));
	case FAILED_STDIO:
		break;
	}
	return err_set(err, ERR_IO, "cannot redirect the trainer's output: %s",
		       strerror(failure->error));
}

/* Until exec or failure; both are quick. */
static int await_exec(const struct trainer_start *what, int report, struct err *err)
{
	struct failure failure;
	ssize_t n;

	do
		n = read(report, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(failure) ? explain(what, &failure, err) : 0;
}

static void close_all(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

pid_t trainer_start(const struct trainer_start *what, int output[2], struct err *err)
{
	/* reading and writing ends: stdout, stderr, report */
	int p[6] = { -1, -1, -1, -1, -1, -1 };
	pid_t parent = getpid();
	pid_t pid = -1;

	if (pipe2(p, O_CLOEXEC) < 0 || pipe2(p + 2, O_CLOEXEC) < 0 || pipe2(p + 4, O_CLOEXEC) < 0)
		err_errno(err, "pipe");
	else if ((pid = fork()) < 0)
		err_errno(err, "fork");
	if (pid == 0)
		child(what, p[1], p[3], p[5], parent);
	if (pid < 0) {
		close_all(p, 6);
		return -1;
	}
	close(p[1]);
	close(p[3]);
	close(p[5]);
	output[0] = p[0];
	output[1] = p[2];
	if (await_exec(what, p[4], err) < 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		close(p[0]);
		close(p[2]);
		pid = -1;
	}
	close(p[4]);
	return pid;
}
