/* SPDX-License-Identifier: MIT */
/* rank.c - runs one rank, or one node's launcher, and clears up behind it.
 *
 * Slurm may leave orphans behind on the nodes of a step (proctrack/linuxproc), and lbrun on the
 * batch host cannot reach them. No claim and no record here: those are the attempt's lbrun's. */
#include "worker/lbrun/rank/rank.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "common/base/text.h"
#include "common/run/attempt.h"
#include "worker/lbrun/checkpoint/part.h"
#include "worker/lbrun/rank/process.h"
#include "worker/lbrun/rank/rank_term.h"
#include "worker/lbrun/heartbeat/beater.h"
#include "worker/lbrun/meter/meter.h"
#include "worker/lbrun/end/ending.h"
#include "worker/lbrun/trainer/cache.h"
#include "worker/lbrun/trainer/output.h"
#include "worker/lbrun/trainer/output_parser.h"
#include "worker/lbrun/end/reap.h"
#include "worker/lbrun/trainer/trainer.h"
#include "worker/lbrun/watch/oom.h"

#define PROFILER "nsys"

enum {
	EXIT_NOT_STARTED = 127,
	CLEAR_EVERY_MS = 10,
	RANK_TERM_EVERY_MS = 200,
	LOOK_EVERY_MS = 500,
	/* Slurm's own SIGKILL follows after KillWait (30 s); be done before. */
	TERM_TO_KILL_MS = 25 * 1000,
};

struct rank {
	int signal_fd;
	struct output output;
	struct beater beater;
	pid_t pid;
	bool is_profiler; /* it may end while the trainer goes on */
	bool has_ended;
	int wait_status;            /* of the program; under a profiler that of the trainer */
	int64_t kill_ms;            /* INT64_MAX = Slurm has not asked it to end */
	bool is_asked;              /* to end, by lbrun: */
	struct rank_term rank_term; /* who got SIGTERM for that */
	int64_t rank_term_ms;       /* next look whether they are gone */
	int64_t ooms; /* that its control group had seen before; -1 = cannot be told */
};

static bool is_profilers(pid_t pid)
{
	char name[32];

	process_file(pid, "comm", name, sizeof(name));
	return text_begins_with(name, PROFILER);
}

/* Does anybody live for whom a profiler that has ended is survived? */
static bool is_outlived(const struct rank *r)
{
	pid_t *pids;
	size_t living = 0, count;

	if (!r->is_profiler)
		return false;
	count = descendants_list(getpid(), &pids);
	for (size_t i = 0; i < count; i++)
		living += !is_profilers(pids[i]);
	free(pids);
	return living > 0;
}

static void on_signal(struct rank *r, int signo, int64_t now_ms)
{
	if (signo == SIGCHLD)
		return;
	if (signo == RANK_TERM) {
		if (!r->is_asked) /* by scancel and by the lbrun of the node */
			rank_term_begin(&r->rank_term);
		r->is_asked = true;
		r->rank_term_ms = now_ms + RANK_TERM_EVERY_MS;
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

/* When its time is up the profiler ends, and the trainer becomes our child: then its end counts.
 * What the profiler itself leaves behind does not. */
static void on_end(struct rank *r, pid_t pid, bool is_profilers)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return;
	if (pid == r->pid || (r->is_profiler && r->has_ended && !is_profilers))
		r->wait_status = status;
	r->has_ended |= pid == r->pid;
}

static void read_signals(struct rank *r, int64_t now_ms)
{
	struct signalfd_siginfo info;
	siginfo_t end = { .si_pid = 0 };

	while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(r, (int)info.ssi_signo, now_ms);
	/* its name can be told only as long as it waits for us */
	while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid > 0) {
		on_end(r, end.si_pid, is_profilers(end.si_pid));
		end.si_pid = 0;
	}
}

static int timeout_ms(const struct rank *r)
{
	int64_t next = output_next_ms(&r->output);
	int64_t now_ms = clock_mono_ms();

	if (r->has_ended && now_ms + LOOK_EVERY_MS < next)
		next = now_ms + LOOK_EVERY_MS;

	if (r->kill_ms < next)
		next = r->kill_ms;
	if (r->rank_term.pids && r->rank_term_ms < next)
		next = r->rank_term_ms;
	if (next == INT64_MAX)
		return -1;
	return next <= now_ms ? 0 : (int)(next - now_ms);
}

/* What it ends is no end that others follow. */
static void hear_beater(struct rank *r)
{
	char text[256];
	bool ends;

	while (beater_heard(&r->beater, text, sizeof(text), &ends)) {
		output_say(&r->output, "%s", text);
		r->is_asked |= ends;
		if (ends)
			r->kill_ms = clock_mono_ms();
	}
}

static void turn(struct rank *r)
{
	struct pollfd fds[2 + OUTPUT_POLL_MAX] = { { .fd = r->signal_fd, .events = POLLIN },
						   { .fd = r->beater.fd, .events = POLLIN } };
	int count = 2 + output_poll(&r->output, fds + 2);
	int64_t now_ms;

	poll(fds, (nfds_t)count, timeout_ms(r));
	now_ms = clock_mono_ms();
	read_signals(r, now_ms);
	hear_beater(r);
	output_turn(&r->output, now_ms);
	if (r->rank_term.pids && now_ms >= r->rank_term_ms) {
		r->rank_term_ms = now_ms + RANK_TERM_EVERY_MS;
		rank_term_look(&r->rank_term);
	}
	if (now_ms >= r->kill_ms) {
		descendants_signal(SIGKILL);
		r->kill_ms = now_ms + CLEAR_EVERY_MS;
	}
}

static void clear(struct rank *r)
{
	while (descendants_signal(SIGKILL) > 0) {
		struct pollfd fd = { .fd = r->signal_fd, .events = POLLIN };

		poll(&fd, 1, CLEAR_EVERY_MS);
		read_signals(r, clock_mono_ms());
		output_turn(&r->output, clock_mono_ms());
	}
}

/* Has another rank of the node left the note of this launch? */
static bool is_told(const char *folder, const struct attempt_unheard *own)
{
	struct attempt_unheard told;

	return attempt_unheard_read(folder, node_name(), &told, NULL) == 0 &&
	       strcmp(told.token, own->token) == 0 && told.launch == own->launch;
}

/* lbrun's own node may be the one that is lost: then nobody but its ranks can tell lbd. */
static void tell_unheard(struct rank *r)
{
	const char *run_dir = getenv("LB_RUN_DIR");
	char *folder = path_join("%s/attempts/%d", run_dir ? run_dir : ".",
				 env_number("LB_ATTEMPT"));
	struct attempt_unheard unheard = { .launch = env_number("LB_LAUNCH"),
					   .nodes = env_number("SLURM_STEP_NUM_NODES"),
					   .silent_ms = r->beater.unheard_ms };
	struct attempt_claim claim;
	struct err why = { 0 };

	if (attempt_claim_read(folder, &claim, &why) == 0) {
		snprintf(unheard.token, sizeof(unheard.token), "%s", claim.token);
		if (!is_told(folder, &unheard))
			attempt_unheard_write(folder, node_name(), &unheard, &why);
	}
	if (why.code != ERR_NONE)
		output_say(&r->output, "lbd is not told: %s", why.text);
	free(folder);
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

/* Did the kernel kill something of it for memory? */
static bool was_oom(const struct rank *r)
{
	return r->ooms >= 0 && oom_kills("/proc/self/cgroup", "/sys/fs/cgroup") > r->ooms;
}

/* The first one to say so is the one that the others follow; who is asked to end is silent. */
static void tell_of_end(struct rank *r)
{
	int signo = WIFSIGNALED(r->wait_status) ? WTERMSIG(r->wait_status) : 0;

	if (r->kill_ms != INT64_MAX || r->is_asked)
		return;
	if (signo)
		output_say(&r->output, OUTPUT_PARSER_RANK_KILLED " (SIG%s)%s", signo,
			   signal_word(signo), was_oom(r) ? OUTPUT_PARSER_RANK_OOM : "");
	else if (WEXITSTATUS(r->wait_status) != 0)
		output_say(&r->output, OUTPUT_PARSER_RANK_FAILED "%s", WEXITSTATUS(r->wait_status),
			   was_oom(r) ? OUTPUT_PARSER_RANK_OOM : "");
}

static bool is_profiler(const char *program)
{
	return strcmp(path_base(program), PROFILER) == 0;
}

/* `keeps`: lines that have a prefix keep it. */
static int run(int rank, bool keeps, char *const *argv)
{
	static struct rank r = { .kill_ms = INT64_MAX }; /* large: buffers of fixed size */
	struct trainer_start what = { .argv = argv, .input = STDIN_FILENO };
	char number[16];
	bool is_first = env_number("SLURM_LOCALID") == 0; /* of the node */
	struct err why = { 0 }, no_beats = { 0 };
	int output[2];

	output_init(&r.output, STDOUT_FILENO, node_name(), rank);
	snprintf(number, sizeof(number), "%d", rank);
	setenv("LB_RANK", number, 1);
	meter_start_of_rank(node_name(), rank);
	if (part_enter(node_name(), is_first, &why) < 0) {
		output_say(&r.output, "%s", why.text);
		return EXIT_NOT_STARTED;
	}
	if (cache_enter(&why) < 0 && is_first)
		output_say(&r.output, "%s" OUTPUT_PARSER_NO_CACHE, why.text);
	if (beater_start(&r.beater, node_name(), rank, &no_beats) < 0 && is_first)
		output_say(&r.output,
			   "no heartbeats: %s: a node that is lost is known only when Slurm knows",
			   no_beats.text);
	what.env = environ;
	r.is_profiler = is_profiler(argv[0]);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r.signal_fd = open_signals();
	r.ooms = oom_kills("/proc/self/cgroup", "/sys/fs/cgroup");
	r.pid = trainer_start(&what, output, &why);
	if (r.pid < 0) {
		output_say(&r.output, "%s", why.text);
		beater_end(&r.beater);
		return EXIT_NOT_STARTED;
	}
	output_attach(&r.output, 0, output[0], keeps);
	output_attach(&r.output, 1, output[1], keeps);
	while (!r.has_ended || is_outlived(&r))
		turn(&r);
	clear(&r);
	hear_beater(&r);
	beater_end(&r.beater);
	if (r.beater.unheard_ms > 0)
		tell_unheard(&r);
	output_finish(&r.output, clock_mono_ms());
	if (!keeps || WIFSIGNALED(r.wait_status)) /* a launcher's status is its own */
		tell_of_end(&r);
	return WIFSIGNALED(r.wait_status) ? 128 + WTERMSIG(r.wait_status)
					  : WEXITSTATUS(r.wait_status);
}

int rank_main(char *const *argv)
{
	return run(env_number(getenv("TORCHELASTIC_RUN_ID") ? "RANK" : "SLURM_PROCID"), false,
		   argv);
}

int rank_node_main(int ranks, char *const *argv)
{
	char number[16];
	int node = env_number("SLURM_NODEID");

	snprintf(number, sizeof(number), "%d", node);
	setenv("PET_NODE_RANK", number, 1); /* torchrun's --node_rank */
	return run(node * ranks, true, argv);
}
