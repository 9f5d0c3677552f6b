/* SPDX-License-Identifier: MIT */
/* Switch files (common/switches.h), seen by lbrun itself: they must work with lbd dead. The kernel
 * says when the folder changes; where it does not, on network file systems, a look every second
 * finds out. What the switch orders, the trainer gets as from lbd; then the job cancels itself, so
 * that Slurm ends what may be left of it on other nodes. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/switches.h"
#include "worker/lbrun/shepherd.h"
#include "worker/lbrun/trainer.h"

enum {
	LOOK_EVERY_MS = 1000,
	SETTLE_MS = 20,
	SAVE_AFTER_MS = 5000,		/* what lbd, if it lives, takes away long before */
	CANCEL_MS = 5000,
};

void switched_open(struct shepherd *s)
{
	s->switch_fd = -1;
	if (!s->params.switches)
		return;
	s->switch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (s->switch_fd >= 0)
		inotify_add_watch(s->switch_fd, s->params.switches,
				  IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR);
}

/* Once for each file, however long it lies there. */
static void look_for_save(struct shepherd *s, const struct switches *all, int64_t now_ms)
{
	const struct switch_file *f = switches_find_save(all, NULL, s->params.run, s->params.group,
							 s->params.owner);

	if (!f || s->phase != PHASE_RUN)
		return;
	if (f->inode != s->save_inode || f->changed_ns != s->save_changed_ns) {
		s->save_inode = f->inode;
		s->save_changed_ns = f->changed_ns;
		s->save_due_ms = now_ms + SAVE_AFTER_MS;
	} else if (now_ms >= s->save_due_ms) {
		s->save_due_ms = INT64_MAX;
		orders_save(s, f->by);
	}
}

static void look_for_order(struct shepherd *s, const struct switches *all, int64_t now_ms)
{
	const struct switch_file *f = switches_find(all, s->params.run, s->params.group,
						    s->params.owner);
	char text[320];

	if (!f)
		return;
	switch_describe(f, text, sizeof(text));
	if (switch_order(f->level) > s->switch_order)
		s->switch_order = switch_order(f->level);
	/* to a trainer a hold is the order to checkpoint and end */
	orders_obey(s, f->level == SWITCH_KILL ? ORDER_KILL : ORDER_STOP, now_ms, text);
}

void switched_news(struct shepherd *s, int64_t now_ms)
{
	char events[4096];

	while (read(s->switch_fd, events, sizeof(events)) > 0)
		continue;
	if (s->switch_ms > now_ms + SETTLE_MS)
		s->switch_ms = now_ms + SETTLE_MS;
}

void switched_look(struct shepherd *s, int64_t now_ms)
{
	struct switch_rules rules = {.owner = geteuid(), .team = s->params.team};
	struct switches all;
	struct err err = {0};

	s->switch_ms = now_ms + LOOK_EVERY_MS;
	if (!s->params.switches)
		return;
	/* what is wrong with the folder, and what does not count, is lbd's to tell */
	if (switches_read(s->params.switches, &rules, &all, NULL, NULL, &err) == 0) {
		look_for_order(s, &all, now_ms);
		look_for_save(s, &all, now_ms);
		switches_clear(&all);
	}
}

/* The job ends with lbrun in any case; but Slurm ends its steps on all nodes only on an order, and
 * "cancelled" is what people then see. An array goes with all its tasks: the switch means the run.
 * The controller may be away: not for long. */
void switched_cancel_job(const struct shepherd *s)
{
	const char *array = getenv("SLURM_ARRAY_JOB_ID");
	const char *job = getenv("SLURM_JOB_ID");	/* none: it is not Slurm's, by whatever number */
	int64_t deadline_ms = clock_mono_ms() + CANCEL_MS;
	pid_t parent = getpid(), pid;

	if (job && array)
		job = array;
	if (s->switch_order == ORDER_RUN || s->ending.cause == CAUSE_COMPLETED || !job || !job[0])
		return;
	pid = fork();
	if (pid == 0) {
		child_begin(parent);
		execlp("scancel", "scancel", "--quiet", "--", job, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		if (clock_mono_ms() >= deadline_ms)
			kill(pid, SIGKILL);
		poll(NULL, 0, 10);
	}
}
