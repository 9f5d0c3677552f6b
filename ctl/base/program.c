/* SPDX-License-Identifier: MIT */
/* program.c - fork, exec, and two pipes that are read until the program has ended. */
#include "ctl/base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum { OUTPUT_MAX_BYTES = 1024 * 1024, NO_SUCH_PROGRAM = 127 };

/* The words from the program on: those before it are settings. */
static const char *const *program_of(const char *const argv[])
{
	while (strchr(*argv, '='))
		argv++;
	return argv;
}

/* What the child has for input, output and errors; -1: as ours. With errors of its own it is heard
 * by us alone, and ends with us. */
static pid_t start(const char *const argv[], int in, int out, int errors, struct err *err)
{
	char *const *words;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0)
		err_errno(err, "fork");
	if (child != 0)
		return child;
	if (errors >= 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) || (out >= 0 && dup2(out, STDOUT_FILENO) < 0) ||
	    (errors >= 0 && dup2(errors, STDERR_FILENO) < 0))
		_exit(NO_SUCH_PROGRAM - 1);
	/* neither changes the words, their prototypes are older than const */
	memcpy(&words, &argv, sizeof(words));
	while (strchr(*words, '='))
		putenv(*words++);
	execvp(words[0], words);
	_exit(errno == ENOENT ? NO_SUCH_PROGRAM : NO_SUCH_PROGRAM - 1);
}

static int finish(pid_t child, const char *name, struct err *err)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	if (WEXITSTATUS(status) == NO_SUCH_PROGRAM)
		return err_set(err, ERR_NOT_FOUND, "%s: there is no such program along PATH", name);
	return WEXITSTATUS(status);
}

int program_run(const char *const argv[], int out_fd, struct err *err)
{
	pid_t child = start(argv, -1, out_fd, -1, err);

	return child < 0 ? -1 : finish(child, *program_of(argv), err);
}

/* 0 at the end of it, -1 when it takes too long. */
static int collect(int fd, int64_t timeout_ms, struct buf *buf)
{
	int64_t end_ms = clock_mono_ms() + timeout_ms;
	char chunk[4096];

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left_ms = end_ms - clock_mono_ms();
		ssize_t n;

		if (left_ms <= 0)
			return -1;
		if (poll(&p, 1, (int)left_ms) <= 0)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n == 0)
			return 0;
		if (n > 0 && buf_add(buf, chunk, (size_t)n) < 0)
			return 0; /* the rest of so much is of no interest */
	}
}

int program_feed(const char *const argv[], int in_fd, int64_t timeout_ms, char **out,
		 struct err *err)
{
	int ends[2], rc = -1;
	bool is_late = false;
	struct buf buf;
	pid_t child;

	*out = xstrdup("");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, "pipe");
	child = start(argv, in_fd, ends[1], ends[1], err);
	close(ends[1]);
	if (child > 0) {
		buf_init(&buf, OUTPUT_MAX_BYTES);
		is_late = collect(ends[0], timeout_ms, &buf) < 0;
		if (is_late)
			kill(child, SIGKILL);
		close(ends[0]);
		rc = finish(child, *program_of(argv), err);
		if (buf.len > 0) {
			free(*out);
			*out = buf_take(&buf);
			(*out)[strlen(*out) - text_ends_with(*out, "\n")] = '\0';
		}
		buf_fini(&buf);
	} else {
		close(ends[0]);
	}
	if (is_late)
		return err_set(err, ERR_TIMEOUT, "%s: no answer within %lld s", *program_of(argv),
			       (long long)timeout_ms / 1000);
	return rc;
}

int program_output(const char *const argv[], int64_t timeout_ms, char **out, struct err *err)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int rc = program_feed(argv, null, timeout_ms, out, err);

	if (null >= 0)
		close(null);
	return rc;
}
