/* SPDX-License-Identifier: MIT */
/* local_ranks.c - forks ranks, waits for all, and ends the rest when one fails. */
#include "worker/lbworker/ranks/local_ranks.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "kernels/comm.h"

enum { LEAVE_MS = 3000, LOOK_MS = 20 };

struct watch {
	int count, left;
	pid_t *pid; /* 0: has ended */
	void *room;
	int status;        /* the highest; 0 */
	int signo;         /* handed on; 0 */
	int64_t failed_ms; /* when; 0 */
	struct err *err;
};

static volatile sig_atomic_t asked;

static void on_signal(int number)
{
	asked = number;
}

static void kill_all(const struct watch *w, int signo)
{
	for (int i = 0; i < w->count; i++)
		if (w->pid[i] > 0)
			kill(w->pid[i], signo);
}

/* As a shell tells of it. */
static int status_by_signal(int signo)
{
	enum { BY_SIGNAL = 128 };

	return BY_SIGNAL + signo;
}

/* A rank that closes its end before has told the others, and people; one that had nothing to save
 * when it was asked to end needs no words. */
static void note_end(struct watch *w, int rank, int status)
{
	char text[COMM_TEXT_BYTES];

	w->pid[rank] = 0;
	w->left--;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	bool is_asked = WIFSIGNALED(status) && WTERMSIG(status) == w->signo;
	/* those that have heard of it end with 1, whatever it was */
	int exit_status = WIFEXITED(status) ? WEXITSTATUS(status)
			  : is_asked        ? status_by_signal(w->signo)
					    : 1;
	w->status = exit_status > w->status ? exit_status : w->status;
	if (w->failed_ms != 0)
		return;
	w->failed_ms = clock_mono_ms();
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "rank %d was killed by signal %d", rank,
			 WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "rank %d ended with status %d", rank, exit_status);
	if (!is_asked && !comm_room_failure(w->room) && !comm_room_has_left(w->room, rank))
		err_set(w->err, ERR_INTERNAL, "%s", text);
	comm_room_fail(w->room, text);
}

static void collect(struct watch *w)
{
	int status;

	for (int i = 0; i < w->count; i++)
		if (w->pid[i] > 0 && waitpid(w->pid[i], &status, WNOHANG) == w->pid[i])
			note_end(w, i, status);
	if (w->failed_ms == 0 && comm_room_failure(w->room))
		w->failed_ms = clock_mono_ms();
}

static void look_after(struct watch *w)
{
	const struct timespec pause = { 0, LOOK_MS * 1000000L };

	while (w->left > 0) {
		if (asked != 0) {
			w->signo = asked;
			kill_all(w, asked);
		}
		asked = 0;
		collect(w);
		if (w->failed_ms != 0 && clock_mono_ms() - w->failed_ms > LEAVE_MS)
			kill_all(w, SIGKILL);
		if (w->left > 0)
			nanosleep(&pause, NULL);
	}
	if (w->status == 0 && comm_room_failure(w->room))
		w->status = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

/* 0 in the new rank, which ends when we do. */
static pid_t fork_rank(pid_t parent)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

int local_ranks_start(int count, void **room, int *status, struct err *err)
{
	struct watch w = { .count = count, .err = err, .room = comm_room_make(count) };
	pid_t parent = getpid();

	*status = 1;
	if (!w.room)
		return err_errno(err, "memory that %d ranks share", count);
	w.pid = xcalloc((size_t)count, sizeof(*w.pid));
	*room = w.room;
	fflush(NULL);
	for (int i = 0; i < count; i++) {
		w.pid[i] = fork_rank(parent);
		if (w.pid[i] == 0) {
			free(w.pid);
			return i;
		}
		if (w.pid[i] < 0) {
			err_errno(err, "rank %d could not be started", i);
			comm_room_fail(w.room, "a rank could not be started");
			w.pid[i] = 0;
			break;
		}
		w.left++;
	}
	catch_signals();
	look_after(&w);
	*status = w.status;
	comm_room_free(w.room, count);
	free(w.pid);
	return -1;
}
