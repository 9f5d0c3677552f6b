/* SPDX-License-Identifier: MIT */
/* background.c - fork, setsid, and a pipe on which the parent waits for "ready". */
#include "daemon/process/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"

static int terminal = -1; /* the stderr of whoever started us, until we are ready */
static char *own_log;     /* in the background: its path; lives as long as we do */

/* Without waiting for somebody to read it, should it be a pipe. */
static int open_log(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
}

/* The parent's end: a newline means ready; without one the child has died and said why, if it
 * could. */
static void wait_for_child(int ready, pid_t child, const char *log_path)
{
	char newline;
	int status = 0;

	if (read(ready, &newline, 1) == 1) {
		printf("lbd runs (pid %d); its log is %s\n", (int)child, log_path);
		exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		fprintf(stderr, "lbd: killed by signal %d as it started; its log is %s\n",
			WTERMSIG(status), log_path);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int background_enter(const char *log_path, struct err *err)
{
	int ready[2], null, log_fd;
	pid_t child;

	log_fd = open_log(log_path);
	if (log_fd < 0 && errno == ENXIO)
		return err_set(err, ERR_IO, "%s: a pipe that nobody reads", log_path);
	if (log_fd < 0)
		return err_errno(err, "%s", log_path);
	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_errno(err, "pipe");
	fflush(NULL);
	child = fork();
	if (child < 0)
		return err_errno(err, "fork");
	if (child > 0) {
		close(ready[1]);
		wait_for_child(ready[0], child, log_path);
	}
	close(ready[0]);
	setsid();
	signal(SIGHUP,
	       SIG_DFL); /* of nohup(1), which meant the terminal: ours opens the log anew */
	terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	dup2(log_fd, STDERR_FILENO);
	close(log_fd);
	own_log = xstrdup(log_path);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		close(null);
	}
	return ready[1];
}

bool background_reopen_log(void)
{
	int fd = own_log ? open_log(own_log) : -1;

	if (own_log && fd < 0)
		log_warn("the log goes on in the old file: %s: %s", own_log, strerror(errno));
	if (fd >= 0) {
		dup2(fd, STDERR_FILENO);
		close(fd);
		log_info("the log was opened anew (SIGHUP)");
	}
	return own_log != NULL;
}

static pid_t buried_for; /* the child that is lbd, while we bury others */

static void pass_on(int signo)
{
	kill(buried_for, signo);
}

/* Nobody waits for them but us, until lbd itself ends. */
static void __attribute__((noreturn)) bury_orphans(pid_t child)
{
	int status = 0;
	pid_t pid;

	buried_for = child;
	signal(SIGTERM, pass_on);
	signal(SIGINT, pass_on);
	signal(SIGHUP, pass_on);
	while ((pid = wait(&status)) != child)
		if (pid < 0 && errno != EINTR)
			exit(1);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void background_leave_init(void)
{
	pid_t child = getpid() == 1 ? fork() : 0;

	if (child > 0)
		bury_orphans(child);
}

void background_say(const char *line)
{
	fprintf(stderr, "%s\n", line);
	if (terminal >= 0)
		dprintf(terminal, "%s\n", line);
}

void background_leave_terminal(void)
{
	if (terminal >= 0)
		close(terminal);
	terminal = -1;
}
