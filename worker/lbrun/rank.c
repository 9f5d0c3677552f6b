/* SPDX-License-Identifier: MIT */
/* Slurm may leave orphans behind on the nodes of a step (proctrack/linuxproc), and lbrun on the
 * batch host cannot reach them. No claim and no record here: those are the attempt's lbrun's. */
#include "worker/lbrun/rank.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/lbrun/ending.h"
#include "worker/lbrun/launchers.h"
#include "worker/lbrun/output.h"
#include "worker/lbrun/printed.h"
#include "worker/lbrun/reap.h"
#include "worker/lbrun/trainer.h"

enum {
	EXIT_NOT_STARTED = 127,
	CLEAR_EVERY_MS = 10,
	ASKED_EVERY_MS = 200,
	/* Slurm's own SIGKILL follows after KillWait (30 s); be done before. */
	TERM_TO_KILL_MS = 25 * 1000,
};

struct rank {
	int signal_fd;
	struct output output;
	pid_t pid;
	bool has_ended;
	int wait_status;
	int64_t kill_ms;	/* INT64_MAX = Slurm has not asked it to end */
	bool is_asked;		/* to end, by lbrun: */
	struct asked asked;	/* who got SIGTERM for that */
	int64_t asked_ms;	/* next look whether they are gone */
};

static void on_signal(struct rank *r, int signo, int64_t now_ms)
{
	if (signo == SIGCHLD)
		return;
	if (signo == RANK_TERM) {
		r->is_asked = true;
		launchers_term(&r->asked);
		r->asked_ms = now_ms + ASKED_EVERY_MS;
		return;
	}
	/* Slurm signals every process of a step that it knows of; SIGTERM is passed on for those
	 * that left their parents, the rest would come twice. */
	if (signo != SIGTERM && signo != SIGINT && signo != SIGQUIT)
		return;
	if (r->kill_ms == INT64_MAX)
		r->kill_ms = now_ms + TERM_TO_KILL_MS;
	descendants_signal(signo == SIGQUIT ? SIGKILL : signo);
}

static void read_signals(struct rank *r, int64_t now_ms)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(r, (int)info.ssi_signo, now_ms);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == r->pid) {
			r->has_ended = true;
			r->wait_status = status;
		}
	}
}

static int timeout_ms(const struct rank *r)
{
	int64_t next = output_next_ms(&r->output);
	int64_t now_ms = clock_mono_ms();

	if (r->kill_ms < next)
		next = r->kill_ms;
	if (r->asked.pids && r->asked_ms < next)
		next = r->asked_ms;
	if (next == INT64_MAX)
		return -1;
	return next <= now_ms ? 0 : (int)(next - now_ms);
}

static void turn(struct rank *r)
{
	struct pollfd fds[1 + OUTPUT_POLL_MAX] = {{.fd = r->signal_fd, .events = POLLIN}};
	int count = 1 + output_poll(&r->output, fds + 1);
	int64_t now_ms;

	poll(fds, (nfds_t)count, timeout_ms(r));
	now_ms = clock_mono_ms();
	read_signals(r, now_ms);
	output_turn(&r->output, now_ms);
	if (r->asked.pids && now_ms >= r->asked_ms) {
		r->asked_ms = now_ms + ASKED_EVERY_MS;
		launchers_turn(&r->asked);
	}
	if (now_ms >= r->kill_ms) {
		descendants_signal(SIGKILL);
		r->kill_ms = now_ms + CLEAR_EVERY_MS;
	}
}

static void clear(struct rank *r)
{
	while (descendants_signal(SIGKILL) > 0) {
		struct pollfd fd = {.fd = r->signal_fd, .events = POLLIN};

		poll(&fd, 1, CLEAR_EVERY_MS);
		read_signals(r, clock_mono_ms());
		output_turn(&r->output, clock_mono_ms());
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGPIPE);
	sigdelset(&set, SIGTSTP);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The first one to say so is the one that the others follow; who is asked to end is silent. */
static void tell_of_signal(struct rank *r)
{
	int signo = WIFSIGNALED(r->wait_status) ? WTERMSIG(r->wait_status) : 0;

	if (signo && r->kill_ms == INT64_MAX && !r->is_asked)
		output_say(&r->output, PRINTED_RANK_KILLED_WORDS "%d (SIG%s)", signo,
			   signal_word(signo));
}

int rank_main(char *const *argv)
{
	static struct rank r = {.kill_ms = INT64_MAX};	/* large: buffers of fixed size */
	static char host[65];
	const char *node = getenv("SLURMD_NODENAME");
	const char *rank = getenv("SLURM_PROCID");
	struct trainer_start what = {.argv = argv, .env = environ, .input = STDIN_FILENO};
	struct err why = {0};
	int output[2];

	gethostname(host, sizeof(host) - 1);
	output_init(&r.output, STDOUT_FILENO, node && node[0] ? node : host,
		    rank ? (int)strtol(rank, NULL, 10) : 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r.signal_fd = open_signals();
	r.pid = trainer_start(&what, output, &why);
	if (r.pid < 0) {
		output_say(&r.output, "%s", why.text);
		return EXIT_NOT_STARTED;
	}
	output_attach(&r.output, 0, output[0], false);
	output_attach(&r.output, 1, output[1], false);
	while (!r.has_ended)
		turn(&r);
	clear(&r);
	output_finish(&r.output, clock_mono_ms());
	tell_of_signal(&r);
	return WIFSIGNALED(r.wait_status) ? 128 + WTERMSIG(r.wait_status)
					  : WEXITSTATUS(r.wait_status);
}
