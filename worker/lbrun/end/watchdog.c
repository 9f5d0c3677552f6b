/* SPDX-License-Identifier: MIT */
/* watchdog.c - forks the shepherd, waits for it, and hands signals on. */
#include "worker/lbrun/end/watchdog.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/run/attempt.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/run/spool.h"
#include "worker/lbrun/end/task_end.h"
#include "worker/lbrun/end/ending.h"
#include "worker/lbrun/end/reap.h"

enum { CLEAR_EVERY_MS = 10, EXIT_BROKEN = 70 };

/* A session of its own: a kill of the job's process group meets the watchdog alone, and the
 * shepherd still has its chance to clear up. */
static void __attribute__((noreturn))
shepherd(int (*work)(const char *), const char *folder, pid_t watchdog)
{
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGQUIT);
	if (getppid() != watchdog)
		_exit(128 + SIGKILL);
	exit(work(folder));
}

static void clear_descendants(void)
{
	while (descendants_signal(SIGKILL) > 0) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		poll(NULL, 0, CLEAR_EVERY_MS);
	}
}

static int64_t last_seq(const char *folder)
{
	char *path = path_join("%s/spool.jsonl", folder);
	struct spool_writer spool;
	int64_t seq = 0;

	if (spool_writer_open(&spool, path, NULL) == 0) {
		seq = spool.seq;
		spool_writer_close(&spool);
	}
	free(path);
	return seq;
}

/* Only for a claim that was the shepherd's, and only if it did not say so itself. */
static void record_death_in(const char *folder, pid_t pid, int signo)
{
	struct attempt_exit e = { .cause = CAUSE_LOST, .exit_code = -1, .signal = signo };
	struct attempt_exit written;
	struct attempt_claim claim;

	if (attempt_claim_read(folder, &claim, NULL) < 0 || claim.pid != pid ||
	    attempt_exit_read(folder, &written, NULL) == 0)
		return;
	snprintf(e.token, sizeof(e.token), "%s", claim.token);
	snprintf(e.text, sizeof(e.text), "lbrun was killed by signal %d (SIG%s)", signo,
		 signal_word(signo));
	e.last_seq = last_seq(folder);
	e.time_ms = clock_wall_ms();
	attempt_exit_write(folder, &e, NULL);
}

/* A task of an array has the claim in a folder of its own. */
static void record_death(const char *attempt, pid_t pid, int signo)
{
	const char *task = task_end_number();
	char *folder = path_join("%s/task-%s", attempt, task ? task : "");
	struct attempt_claim claim;

	if (attempt_claim_read(folder, &claim, NULL) == 0) {
		record_death_in(folder, pid, signo);
		task_end_sum_up(attempt, claim.token);
	} else {
		record_death_in(attempt, pid, signo);
	}
	free(folder);
}

/* Until the shepherd ends; its wait status. */
static int watch(pid_t pid, const sigset_t *signals)
{
	for (;;) {
		int signo = sigwaitinfo(signals, NULL);
		pid_t ended;
		int status;

		if (signo > 0 && signo != SIGCHLD)
			kill(pid, signo);
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
			if (ended == pid)
				return status;
		}
	}
}

int watchdog_run(int (*work)(const char *folder), const char *folder)
{
	pid_t watchdog = getpid();
	sigset_t signals;
	pid_t pid;
	int status;

	/* Not the ones that tell of our own mistakes; those end us. */
	sigemptyset(&signals);
	for (const int *signo = (const int[]){ SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1,
					       SIGUSR2, SIGALRM, SIGPIPE, 0 };
	     *signo; signo++)
		sigaddset(&signals, *signo);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0) {
		log_error("cannot fork");
		return EXIT_BROKEN;
	}
	if (pid == 0)
		shepherd(work, folder, watchdog);
	status = watch(pid, &signals);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	log_error("the shepherd was killed by signal %d; ending what it left", WTERMSIG(status));
	clear_descendants();
	record_death(folder, pid, WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
