/* SPDX-License-Identifier: MIT */
/* shepherd.c - the loop: hear, put it into the facts, take the steps that are due.
 *
 * One thread, one poll(2): signals arrive through a descriptor, waits are deadlines on the
 * monotonic clock, and nothing here blocks for long. The child subreaper property makes every
 * process that the trainer leaves behind our child. */
#include "worker/lbrun/shepherd/shepherd.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

enum {
	POLL_MAX = 4 + 2 * OUTPUT_POLL_MAX + SERVER_POLL_MAX,
	POLL_MAX_MS = 60 * 1000,
	RANK_TERM_EVERY_MS = 200,
};

/* --- children --------------------------------------------------------------------------------- */

/* What went, and what has become large, is told in the run's events. */
static void tell_pruned(struct shepherd *s)
{
	static const double gb = 1e9;
	int64_t launch = s->facts.launch.number;
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
		journal_note(&s->journal, s->facts.launch.number, "checkpoints_stay", "%s",
			     why.text);
}

static void tell_edits(struct shepherd *s)
{
	char text[EDITS_TEXT_BYTES];

	if (!edits_end(&s->edits, text))
		return;
	journal_note(&s->journal, s->facts.launch.number, "code_changed",
		     "%s; this launch runs them as they are now", text);
	output_say(&s->output, "%s", text);
}

static void reap(struct shepherd *s)
{
	struct launch *l = &s->facts.launch;
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		if (used.ru_maxrss / 1024 > l->peak_mb)
			l->peak_mb = used.ru_maxrss / 1024;
		if (pid == l->pid && l->is_open) {
			launch_ended(l, status, clock_mono_ms());
			if (status != 0)
				saves_try_room(s);
		}
		if (pid == s->preflight.pid)
			preflight_ended(s, status);
		if (pid == s->pruning.pid)
			tell_pruned(s);
		if (pid == s->edits.pid)
			tell_edits(s);
		stacks_reaped(&s->stacks, pid, status);
		if (pid == s->seal_pid)
			saves_sealed(s);
		if (pid == s->stage.pid)
			staging_reaped(s);
	}
}

/* --- facts, steps ----------------------------------------------------------------------------- */

static void gather_search(struct shepherd *s)
{
	struct shepherd_facts *f = &s->facts;
	const struct search *search = &s->search;

	f->looking = LOOKING_DONE;
	f->found = search->found == SEARCH_UNKNOWN ? FOUND_UNKNOWN : search->found;
	if (f->found == FOUND_UNKNOWN)
		snprintf(s->trouble, sizeof(s->trouble), "%s", search->text);
	f->found_step = search->found == 1 ? search_told_step(search) : -1;
	f->newest_step = search->newest_step;
}

/* What the parts know by themselves; the rest was written down when it was heard. */
static void gather(struct shepherd *s)
{
	struct shepherd_facts *f = &s->facts;

	f->listens = trainer_server_has_trainer(&s->server);
	f->hung_at_ms = hang_is_watched(s) ? watch_next_ms(&s->watch) : INT64_MAX;
	f->stacks = s->hang_sign_ms == s->watch.sign_ms ? STACKS_DONE : STACKS_NONE;
	if (s->stacks.pid > 0)
		f->stacks = STACKS_BUSY;
	if (f->looking == LOOKING_BUSY && s->search.state == SEARCH_DONE)
		gather_search(s);
	f->is_pruning = pruning_is_due(&s->pruning) || s->pruning.pid > 0;
	f->is_draining = stage_is_draining(&s->stage);
	f->held_until_ms = staging_held_until_ms(s);
	if (s->is_out_of_room && !f->launch.is_open && clock_mono_ms() >= s->room_look_ms)
		saves_try_room(s);
	f->is_full = s->journal.is_failing || s->is_out_of_room;
	f->full_ms = s->journal.failed_ms;
}

/* All that is due. */
static void take_steps(struct shepherd *s)
{
	struct next next = { 0 };

	do {
		int64_t now_ms = clock_mono_ms();

		gather(s);
		next = shepherd_decide(&s->facts, &s->policy, now_ms);
		shepherd_note(&s->facts, &s->policy, &next, now_ms);
		if (next.kind != NEXT_WAIT)
			act(s, &next, now_ms);
	} while (next.kind != NEXT_WAIT && !s->is_left);
	s->step_ms = next.at_ms;
}

/* --- one turn --------------------------------------------------------------------------------- */

/* Ranks are no children of ours: nobody tells when they are gone. */
static void rank_term_turn(struct shepherd *s, int64_t now_ms)
{
	if (s->rank_term.pids == NULL || now_ms < s->rank_term_ms)
		return;
	s->rank_term_ms = now_ms + RANK_TERM_EVERY_MS;
	rank_term_look(&s->rank_term);
}

static void read_signals(struct shepherd *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		orders_signal(s, (int)info.ssi_signo);
	reap(s);
}

static int timeout_ms(const struct shepherd *s)
{
	const int64_t due[] = {
		s->step_ms,
		s->look_ms,
		s->switch_ms,
		output_next_ms(&s->output),
		journal_next_ms(&s->journal),
		s->stacks.pid > 0 ? stacks_next_ms(&s->stacks) : INT64_MAX,
		s->rank_term.pids ? s->rank_term_ms : INT64_MAX,
		s->has_errors ? output_next_ms(&s->errors) : INT64_MAX,
		stage_next_ms(&s->stage),
	};
	int64_t next = due[0];
	int64_t now_ms = clock_mono_ms();

	for (size_t i = 1; i < sizeof(due) / sizeof(due[0]); i++) {
		if (due[i] < next)
			next = due[i];
	}
	if (next <= now_ms)
		return 0;
	return next - now_ms < POLL_MAX_MS ? (int)(next - now_ms) : POLL_MAX_MS;
}

/* Hears what there is to hear; waits for it until a step is due. */
static void hear(struct shepherd *s)
{
	struct pollfd fds[POLL_MAX];
	int count = 0;
	int server_first, server_count;
	int64_t now_ms;

	fds[count++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[count++] = (struct pollfd){ .fd = s->search.fd, .events = POLLIN };
	fds[count++] = (struct pollfd){ .fd = switch_watch_fd(s, clock_mono_ms()),
					.events = POLLIN };
	fds[count++] = (struct pollfd){ .fd = s->listener.fd, .events = POLLIN };
	count += output_poll(&s->output, fds + count);
	if (s->has_errors)
		count += output_poll(&s->errors, fds + count);
	server_first = count;
	server_count = trainer_server_poll(&s->server, fds + count);
	count += server_count;
	if (poll(fds, (nfds_t)count, timeout_ms(s)) < 0)
		server_count = 0;

	now_ms = clock_mono_ms();
	read_signals(s);
	search_turn(&s->search);
	prune(s);
	output_turn(&s->output, now_ms);
	if (s->has_errors)
		output_turn(&s->errors, now_ms);
	if (server_count > 0)
		trainer_server_turn(&s->server, fds + server_first, server_count);
	if (fds[3].revents)
		heartbeats_news(s);
	if (fds[2].revents & POLLIN)
		switch_watch_news(s, now_ms);
	if (now_ms >= s->switch_ms)
		switch_watch_look(s, now_ms);
	if (now_ms >= s->look_ms)
		orders_look(s, now_ms);
	hang_turn(s, now_ms);
	meters_look(s, now_ms);
	rank_term_turn(s, now_ms);
	staging_turn(s, now_ms);
	journal_turn(&s->journal, now_ms);
}

int shepherd_main(const char *folder)
{
	static struct shepherd s; /* large: buffers of fixed size */
	int status = opening_read(&s, folder);

	if (status)
		return status;
	if (s.params.is_script && script_task_enter(&s)) {
		attempt_params_clear(&s.params);
		return 0;
	}
	take_steps(&s);
	while (!s.is_left) {
		hear(&s);
		take_steps(&s);
	}
	status = s.status;
	if (s.facts.claim == CLAIM_OURS) {
		if (s.params.is_script)
			script_task_leave(&s);
		switch_watch_cancel_job(&s);
		opening_undo(&s);
	} else {
		attempt_params_clear(&s.params);
	}
	return status;
}
