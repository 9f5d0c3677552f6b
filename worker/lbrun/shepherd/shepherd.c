/* SPDX-License-Identifier: MIT */
/* shepherd.c - goes through the phases of an attempt, and waits for what happens in each.
 *
 * One thread, one poll(2): signals arrive through a descriptor, waits are deadlines on the
 * monotonic clock, and nothing here blocks for long. The child subreaper property makes every
 * process that the trainer leaves behind our child. */
#include "worker/lbrun/shepherd/shepherd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "worker/lbrun/shepherd/predecessor.h"
#include "worker/lbrun/end/reap.h"

enum {
	POLL_MAX = 3 + 2 * OUTPUT_POLL_MAX + SERVER_POLL_MAX,
	RANK_TERM_EVERY_MS = 200,
	CLEAR_EVERY_MS = 10, /* between two passes over what is left */
	RELAUNCH_PAUSE_MS = 1000,
	SEARCH_TRIES = 3,
	OUR_TERM_MS = 1000, /* Slurm's SIGTERM to a whole job reaches us so long after others */
	ROOM_WAIT_MS = 60 * 1000,    /* for a disk that is full, before another launch */
	LAST_WORDS_MS = 10 * 1000,   /* a full disk delays our end by this much at most, … */
	OWN_END_MS = 10 * 60 * 1000, /* … or by this where nobody has asked us to end */
	EXIT_BROKEN = 70,
};

/* --- children --------------------------------------------------------------------------------- */

/* What went, and what has become large, is told in the run's events. */
static void tell_pruned(struct shepherd *s)
{
	static const double gb = 1e9;
	int64_t launch = s->launch.number;
	struct pruned out;

	if (!pruning_end(&s->pruning, &out))
		return;
	if (out.count > 0)
		journal_note(&s->journal, launch, "checkpoints_removed",
			     "%lld old checkpoint%s, %.1f GB, of steps "
			     "%s; %.1f GB are left",
			     (long long)out.count, out.count == 1 ? "" : "s",
			     (double)out.bytes / gb, out.steps[0] ? out.steps : "?",
			     (double)out.total_bytes / gb);
	if (out.text[0])
		journal_note(&s->journal, launch, "checkpoints_stay", "%s", out.text);
	if (pruning_is_large(&s->pruning, out.total_bytes))
		journal_note(
			&s->journal, launch, "checkpoints_large",
			"the checkpoints in %s take %.1f GB, and "
			"none is ever removed: checkpoint.keep_latest_k or max_bytes keeps fewer",
			s->params.checkpoint_dir, (double)out.total_bytes / gb);
}

static void prune(struct shepherd *s)
{
	struct err why = { 0 };

	if (pruning_is_due(&s->pruning) &&
	    pruning_start(&s->pruning, s->params.checkpoint_dir, &s->search, &s->handed, &why) < 0)
		journal_note(&s->journal, s->launch.number, "checkpoints_stay", "%s", why.text);
}

static void reap(struct shepherd *s)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		if (used.ru_maxrss > s->launch.peak_kb)
			s->launch.peak_kb = used.ru_maxrss;
		if (pid == s->launch.pid && s->launch.is_open) {
			s->launch.has_ended = true;
			s->launch.wait_status = status;
		}
		if (pid == s->pruning.pid)
			tell_pruned(s);
		stacks_reaped(&s->stacks, pid, status);
		if (pid == s->seal_pid)
			saves_sealed(s);
	}
}

/* --- phases ----------------------------------------------------------------------------------- */

static void enter(struct shepherd *s, enum phase phase, int64_t at_ms)
{
	s->phase = phase;
	s->phase_ms = at_ms;
}

/* What a person chose holds for the first launch only: what that one saves is newer. */
static const char *chosen(const struct shepherd *s)
{
	return s->launch.number == 0 ? s->params.resume : "latest";
}

static void begin_search(struct shepherd *s, int64_t now_ms)
{
	struct search_request request = {
		.folder = s->params.checkpoint_dir,
		.choice = chosen(s),
		.rules = s->rules,
		.handed = &s->handed,
		.seals = s->seals,
		.check_ms = s->params.check_ms,
	};
	struct err why = { 0 };

	if (search_start(&s->search, &request, &why) == 0) {
		enter(s, PHASE_SEARCH, INT64_MAX);
		return;
	}
	s->ending = (struct ending){ .cause = CAUSE_LAUNCH_FAIL, .exit_code = -1 };
	snprintf(s->ending.text, sizeof(s->ending.text), "%.190s", why.text);
	enter(s, PHASE_CLEAR, now_ms);
}

static void wait_turn(struct shepherd *s, int64_t now_ms)
{
	if (now_ms < s->wait_until_ms &&
	    predecessor_may_live(s->params.run_dir, s->params.number, &s->claim))
		s->phase_ms = now_ms + OLDER_LOOK_MS;
	else
		begin_search(s, now_ms);
}

static void refuse_to_start(struct shepherd *s)
{
	s->ending = (struct ending){ .cause = CAUSE_ERROR, .exit_code = -1, .is_final = true };
	if (chosen(s)[0] == '/')
		snprintf(s->ending.text, sizeof(s->ending.text),
			 "the checkpoint %.90s is not valid: choose another (lbctl restart --from)",
			 chosen(s));
	else
		snprintf(s->ending.text, sizeof(s->ending.text),
			 "no valid checkpoint in %.90s: lbctl checkpoints %.40s says why",
			 s->params.checkpoint_dir, s->params.run);
	output_say(&s->output, "%s", s->ending.text);
	output_say(&s->output, "%s", s->search.text);
	journal_note(
		&s->journal, s->launch.number, "no_valid_checkpoint",
		"%s; lbctl checkpoints %s shows each, lbctl restart %s --from STEP takes one, --from scratch "
		"none",
		s->search.text, s->params.run, s->params.run);
}

/* The search died, or the disk failed it: that says nothing of the checkpoints, and a later look may
 * succeed, here or in another job. */
static void search_again(struct shepherd *s, int64_t now_ms)
{
	output_say(&s->output, "%s", s->search.text);
	if (++s->searches_lost < SEARCH_TRIES) {
		enter(s, PHASE_PAUSE, now_ms + RELAUNCH_PAUSE_MS);
		return;
	}
	s->ending = (struct ending){ .cause = CAUSE_CRASH, .exit_code = -1 };
	snprintf(s->ending.text, sizeof(s->ending.text),
		 "no checkpoint could be looked for: %.150s", s->search.text);
	enter(s, PHASE_CLEAR, now_ms);
}

static void search_phase(struct shepherd *s, int64_t now_ms)
{
	if (s->search.state != SEARCH_DONE)
		return;
	if (s->search.found == SEARCH_UNKNOWN) {
		search_again(s, now_ms);
		return;
	}
	s->searches_lost = 0;
	if (s->search.found < 0) {
		refuse_to_start(s);
		enter(s, PHASE_CLEAR, now_ms);
		return;
	}
	/* the last look before anything is started */
	switch_watch_look_at_all(s, now_ms);
	if (s->stop.why != STOP_NOT) {
		s->phase_ms = now_ms;
		return;
	}
	launch_begin(s);
	if (s->launch.is_open)
		enter(s, PHASE_RUN, INT64_MAX);
	else
		enter(s, PHASE_CLEAR, now_ms);
}

/* Its SIGTERM was perhaps for all of the job: then it comes to us, too, and was no crash. */
static bool may_be_told(struct shepherd *s, int64_t now_ms)
{
	int64_t until_ms = s->launch.ended_ms + OUR_TERM_MS;
	int status = s->launch.wait_status;
	bool is_terminated = (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
			     (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);

	if (!is_terminated || s->stop.why != STOP_NOT || now_ms >= until_ms)
		return false;
	s->phase_ms = until_ms;
	return true;
}

static void run_turn(struct shepherd *s, int64_t now_ms)
{
	if (s->launch.has_ended) {
		if (s->launch.ended_ms == 0)
			s->launch.ended_ms = now_ms;
		if (may_be_told(s, now_ms))
			return;
		enter(s, PHASE_CLEAR, now_ms);
	} else if (now_ms >= s->phase_ms) { /* launch_kill was not enough */
		descendants_signal(SIGKILL);
		s->phase_ms = now_ms + CLEAR_EVERY_MS;
	}
}

/* A shell in front of a trainer dies of the SIGTERM that the trainer itself may still obey. */
static bool has_grace_left(const struct shepherd *s, int64_t now_ms)
{
	return s->launch.is_open && s->stop.done[STEP_TERM] && !s->stop.done[STEP_KILL] &&
	       now_ms < s->stop.due_ms[STEP_KILL] &&
	       now_ms < s->launch.ended_ms + s->params.kill_grace_ms;
}

static void clear_turn(struct shepherd *s, int64_t now_ms)
{
	bool progress = false;

	if (descendants_signal(has_grace_left(s, now_ms) ? 0 : SIGKILL) > 0) {
		s->phase_ms = now_ms + CLEAR_EVERY_MS;
		return;
	}
	if (s->launch.is_open && launch_finish(s, &progress)) {
		enter(s, PHASE_PAUSE, clock_mono_ms() + (progress ? 0 : RELAUNCH_PAUSE_MS));
		s->wait_until_ms = clock_mono_ms() + ROOM_WAIT_MS;
	} else {
		enter(s, PHASE_OVER, INT64_MAX);
	}
}

/* A trainer that is started on a full disk would mostly die of it, too. */
static void pause_turn(struct shepherd *s, int64_t now_ms)
{
	if (s->journal.is_failing && now_ms < s->wait_until_ms)
		s->phase_ms = now_ms + RELAUNCH_PAUSE_MS;
	else
		begin_search(s, now_ms);
}

/* Asked to end while no trainer runs. */
static void end_without_trainer(struct shepherd *s, int64_t now_ms)
{
	search_stop(&s->search);
	ending_without_trainer(stopping_reason(&s->stop), s->stop_text, &s->ending);
	enter(s, PHASE_CLEAR, now_ms);
}

static void phase_turn(struct shepherd *s, int64_t now_ms)
{
	bool is_idle = s->phase == PHASE_WAIT || s->phase == PHASE_SEARCH ||
		       s->phase == PHASE_PAUSE;

	if (is_idle && s->stop.why != STOP_NOT)
		end_without_trainer(s, now_ms);
	if (s->phase == PHASE_SEARCH)
		search_phase(s, now_ms);
	if (s->phase == PHASE_RUN)
		run_turn(s, now_ms);
	if (now_ms < s->phase_ms)
		return;
	if (s->phase == PHASE_WAIT)
		wait_turn(s, now_ms);
	else if (s->phase == PHASE_CLEAR)
		clear_turn(s, now_ms);
	else if (s->phase == PHASE_PAUSE)
		pause_turn(s, now_ms);
}

/* --- one turn --------------------------------------------------------------------------------- */

static void stop_turn(struct shepherd *s, int64_t now_ms)
{
	enum stop_step step;

	if (s->phase != PHASE_RUN)
		return;
	while ((step = stopping_take(&s->stop, now_ms)) != STEP_NONE) {
		if (step == STEP_ASK)
			trainer_server_order(&s->server, "stop");
		else if (step == STEP_TERM)
			launch_term(s);
		else
			s->phase_ms = now_ms + launch_kill(s);
	}
}

/* Ranks are no children of ours: nobody tells when they are gone. */
static void rank_term_turn(struct shepherd *s, int64_t now_ms)
{
	if (s->rank_term.pids == NULL || now_ms < s->rank_term_ms)
		return;
	s->rank_term_ms = now_ms + RANK_TERM_EVERY_MS;
	rank_term_look(&s->rank_term);
}

static void read_signals(struct shepherd *s, int64_t now_ms)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		orders_signal(s, (int)info.ssi_signo, now_ms);
	reap(s);
}

static int timeout_ms(const struct shepherd *s)
{
	const int64_t due[] = {
		s->phase_ms,
		s->look_ms,
		s->switch_ms,
		output_next_ms(&s->output),
		journal_next_ms(&s->journal),
		s->phase == PHASE_RUN ? stopping_next_ms(&s->stop) : INT64_MAX,
		hang_next_ms(s),
		s->rank_term.pids ? s->rank_term_ms : INT64_MAX,
		s->has_errors ? output_next_ms(&s->errors) : INT64_MAX,
	};
	int64_t next = due[0];
	int64_t now_ms = clock_mono_ms();

	for (size_t i = 1; i < sizeof(due) / sizeof(due[0]); i++) {
		if (due[i] < next)
			next = due[i];
	}
	if (next <= now_ms)
		return 0;
	return next - now_ms < 60 * 1000 ? (int)(next - now_ms) : 60 * 1000;
}

static void turn(struct shepherd *s)
{
	struct pollfd fds[POLL_MAX];
	int count = 0;
	int server_first, server_count;
	int64_t now_ms;

	fds[count++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[count++] = (struct pollfd){ .fd = s->search.fd, .events = POLLIN };
	fds[count++] = (struct pollfd){ .fd = switch_watch_fd(s, clock_mono_ms()),
					.events = POLLIN };
	count += output_poll(&s->output, fds + count);
	if (s->has_errors)
		count += output_poll(&s->errors, fds + count);
	server_first = count;
	server_count = trainer_server_poll(&s->server, fds + count);
	count += server_count;
	if (poll(fds, (nfds_t)count, timeout_ms(s)) < 0)
		server_count = 0;

	now_ms = clock_mono_ms();
	read_signals(s, now_ms);
	search_turn(&s->search);
	prune(s);
	output_turn(&s->output, now_ms);
	if (s->has_errors)
		output_turn(&s->errors, now_ms);
	if (server_count > 0)
		trainer_server_turn(&s->server, fds + server_first, server_count);
	if (fds[2].revents & POLLIN)
		switch_watch_news(s, now_ms);
	if (now_ms >= s->switch_ms)
		switch_watch_look(s, now_ms);
	if (now_ms >= s->look_ms)
		orders_look(s, now_ms);
	hang_turn(s, now_ms);
	stop_turn(s, now_ms);
	rank_term_turn(s, now_ms);
	phase_turn(s, now_ms);
	journal_turn(&s->journal, now_ms);
}

/* --- the attempt ------------------------------------------------------------------------------ */

static void on_bad_checkpoint(void *arg, const char *path, int64_t step, bool is_suspect,
			      const char *why)
{
	struct shepherd *s = arg;
	struct told_checkpoint bad = {
		.path = path, .layout = "", .step = step, .bytes = -1, .text = why
	};

	output_say(&s->output, "checkpoint skipped: %s", why);
	if (is_suspect) /* it is whole: a person may choose it */
		journal_note(&s->journal, s->launch.number, "checkpoint_suspect", "%s", why);
	else
		record_checkpoint(s, &bad);
}

static void say(void *arg, const char *text)
{
	output_say(arg, "%s", text);
}

static int open_signals(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&set);
	for (const int *signo = (const int[]){ SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1,
					       SIGUSR2, 0 };
	     *signo; signo++)
		sigaddset(&set, *signo);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Slurm made out.log by the job's umask; what a trainer prints is for its owner and the team. A
 * file that somebody else named is as they want it. */
static void close_output(const struct shepherd *s)
{
	char *path = path_join("%s/out.log", s->folder);
	struct stat ours, out;

	if (fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode) && lstat(path, &ours) == 0 &&
	    ours.st_ino == out.st_ino && ours.st_dev == out.st_dev && out.st_uid == geteuid() &&
	    (out.st_mode & 0027))
		fchmod(STDOUT_FILENO, out.st_mode & 0640);
	free(path);
}

static void open_parts(struct shepherd *s)
{
	const char *rank = getenv("SLURM_PROCID");
	char *spool = path_join("%s/spool.jsonl", s->folder);
	struct err why = { 0 };

	output_init(&s->output, STDOUT_FILENO, s->node, rank ? (int)strtol(rank, NULL, 10) : 0);
	close_output(s);
	if (s->params.is_script)
		script_output_open(s, rank ? (int)strtol(rank, NULL, 10) : 0);
	journal_open(&s->journal, spool, s->params.lbd_socket, s->params.run);
	s->journal.say = say;
	s->journal.arg = &s->output;
	free(spool);
	saves_open(s);
	search_init(&s->search);
	s->search.on_bad = on_bad_checkpoint;
	s->search.arg = s;
	stopping_init(&s->stop, s->params.kill_wait_ms);
	record_attempt_start(s);
	if (trainer_server_open(&s->server, s->folder, &why) < 0) {
		output_say(&s->output, "trainers cannot report: %s", why.text);
		journal_note(&s->journal, 0, "no_socket", "trainers cannot report: %s", why.text);
	}
	trainer_protocol_init(s);
	if (trainer_protocol_read_output(s, &why) < 0) {
		output_say(&s->output, "output is not read: %s", why.text);
		journal_note(&s->journal, 0, "output_not_read", "%s", why.text);
	}
	s->errors.on_bytes = s->output.on_bytes;
	s->errors.arg = s->output.arg;
}

/* exit.json is the last thing that happens: who sees it may take it that all else is done. */
static void last_words(struct shepherd *s)
{
	struct attempt_exit e = {
		.cause = s->ending.cause,
		.exit_code = s->ending.exit_code,
		.signal = s->ending.signal,
		.is_final = s->ending.is_final,
		.launches = s->launch.number,
		.switched = s->switch_order,
	};
	int64_t deadline_ms = clock_mono_ms() +
			      (s->stop.why == STOP_NOT ? OWN_END_MS : LAST_WORDS_MS);
	struct err why;

	output_finish(&s->output, clock_mono_ms());
	if (s->has_errors)
		output_finish(&s->errors, clock_mono_ms());
	trainer_server_close(&s->server);
	record_attempt_end(s);
	while (!journal_sync(&s->journal) && clock_mono_ms() < deadline_ms)
		poll(NULL, 0, 200);
	snprintf(e.token, sizeof(e.token), "%s", s->params.token);
	snprintf(e.text, sizeof(e.text), "%s", s->ending.text);
	e.last_seq = s->journal.spool.seq;
	do {
		why = (struct err){ 0 };
		e.time_ms = clock_wall_ms();
		if (failpoint(FP_EXIT_BEFORE, &why) == 0 &&
		    attempt_exit_write(s->folder, &e, &why) == 0) {
			failpoint(FP_EXIT_WRITTEN, NULL);
			return;
		}
		poll(NULL, 0, 200);
	} while (clock_mono_ms() < deadline_ms);
	output_say(&s->output, "cannot write the exit record: %s", why.text);
}

/* 0 = go on; else the exit status + 1 in *status and nothing was touched. */
static bool take_claim(struct shepherd *s, int *status)
{
	int64_t newest = attempt_newest_claim(s->params.run_dir);
	struct err why = { 0 };

	*status = 0;
	if (newest > s->params.number) {
		log_warn("fenced: attempt %lld of %s has the run; nothing was started",
			 (long long)newest, s->params.run);
		return false;
	}
	claim_of_this_process(&s->claim, s->params.token);
	if (failpoint(FP_CLAIM_BEFORE, &why) == 0 &&
	    attempt_claim_take(s->folder, &s->claim, &why) == 0) {
		failpoint(FP_CLAIM_TAKEN, NULL);
		return true;
	}
	if (why.code == ERR_LOCKED) {
		log_warn("attempt %lld of %s is claimed already; nothing was started",
			 (long long)s->params.number, s->params.run);
		return false;
	}
	log_error("cannot claim the attempt: %s", why.text);
	*status = EXIT_BROKEN;
	return false;
}

/* The attempt cannot even begin. Only the one who would have had the claim may say so. */
static void record_broken(const struct shepherd *s, const char *text)
{
	struct attempt_exit e = { .cause = CAUSE_LAUNCH_FAIL,
				  .exit_code = -1,
				  .time_ms = clock_wall_ms() };
	struct attempt_claim held;

	if (attempt_claim_read(s->folder, &held, NULL) == 0)
		return;
	snprintf(e.token, sizeof(e.token), "%s", s->params.token);
	snprintf(e.text, sizeof(e.text), "%s", text);
	attempt_exit_write(s->folder, &e, NULL);
}

static const char *node_name(void)
{
	static char host[65];
	const char *node = getenv("SLURMD_NODENAME");

	gethostname(host, sizeof(host) - 1);
	return node && node[0] ? node : host;
}

static int read_params(struct shepherd *s, struct err *err)
{
	const struct attempt_params *p = &s->params;

	if (attempt_params_read(s->folder, &s->params, err) < 0)
		return -1;
	pruning_open(&s->pruning, p);
	s->rules = checkpoint_rules_create(p->layout, p->pattern, p->complete_when, err);
	return s->rules ? 0 : err_wrap(err, "checkpoint");
}

int shepherd_main(const char *folder)
{
	static struct shepherd s; /* large: buffers of fixed size */
	struct err why = { 0 };
	int status;

	s.folder = s.orders_folder = folder;
	s.node = node_name();
	if (read_params(&s, &why) < 0) {
		log_error("%s", why.text);
		return EXIT_BROKEN;
	}
	if (s.params.is_script && script_task_enter(&s)) {
		attempt_params_clear(&s.params);
		return 0;
	}
	s.signal_fd = open_signals();
	if (!take_claim(&s, &status)) {
		if (status)
			record_broken(&s, "the attempt could not be claimed");
		attempt_params_clear(&s.params);
		return status;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	open_parts(&s);
	switch_watch_open(&s);
	s.wait_until_ms = clock_mono_ms() + OLDER_WAIT_MS;
	enter(&s, PHASE_WAIT, 0);
	/* look_ms and switch_ms are 0: claims, orders and switches are looked at before anything is
	 * started. */
	while (s.phase != PHASE_OVER)
		turn(&s);
	last_words(&s);
	if (s.params.is_script)
		script_task_leave(&s);
	switch_watch_cancel_job(&s);
	switch_watch_close(&s);
	status = ending_exit_status(&s.ending);
	search_stop(&s.search);
	journal_close(&s.journal);
	output_parser_fini(&s.parser);
	complaints_fini(&s.complaints);
	ranks_reset(&s.ranks);
	saves_close(&s);
	pruning_close(&s.pruning);
	attempt_params_clear(&s.params);
	return status;
}
