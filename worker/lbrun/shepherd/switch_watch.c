/* SPDX-License-Identifier: MIT */
/* switch_watch.c - switch files (common/team/switches.h), seen by lbrun itself: they must work with
 * lbd dead. The kernel says when the folder changes. On network file systems it does not: a look
 * every second finds out. Elsewhere it is trusted, and a look in six seconds finds what it did not
 * tell. The folder may hold any number of files: what names this run is looked up first, and the
 * rest read in pieces, for a hundredth of a processor's time. What the switch orders, the trainer
 * gets as from lbd; then the job cancels itself, so that Slurm ends what may be left of it on other
 * nodes. */
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/team/switches.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/slurm_command.h"

enum {
	LOOK_EVERY_MS = 1000,
	TOLD_LOOK_EVERY_MS = 6 * 1000,
	SETTLE_MS = 20,
	PIECE_MS = 10,
	WHOLE_MS = 2000, /* before a start, as long as it takes, within reason */
	PART = 100,      /* one part in so many of the time is for reading */
	EVENT_READS = 64,
	SAVE_AFTER_MS = 5000, /* what lbd, if it lives, takes away long before */
};

/* Whoever changes something there does it through this kernel. */
static bool is_local(const char *folder)
{
	static const unsigned long magics[] = {
		0xef53 /* ext2, 3, 4 */, 0x58465342 /* xfs */, 0x9123683e /* btrfs */,
		0x01021994 /* tmpfs */,  0x2fc12fc1 /* zfs */,
	};
	struct statfs st;

	if (statfs(folder, &st) < 0)
		return false;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((unsigned long)st.f_type == magics[i])
			return true;
	return false;
}

void switch_watch_open(struct shepherd *s)
{
	const uint32_t events = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_MOVE_SELF |
				IN_DELETE_SELF | IN_ONLYDIR;

	s->switch_fd = -1;
	if (!s->params.switches)
		return;
	s->switch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	s->is_told_of_switches = s->switch_fd >= 0 &&
				 inotify_add_watch(s->switch_fd, s->params.switches, events) >= 0 &&
				 is_local(s->params.switches);
}

/* Once for each file, however long it lies there. */
static void look_for_save(struct shepherd *s, const struct switches *all, int64_t now_ms)
{
	const struct switch_file *f = switches_find_save(all, NULL, s->params.run, s->params.group,
							 s->params.owner);

	if (!f || !hang_is_watched(s))
		return;
	if (f->inode != s->save_inode || f->changed_ns != s->save_changed_ns) {
		s->save_inode = f->inode;
		s->save_changed_ns = f->changed_ns;
		s->save_due_ms = now_ms + SAVE_AFTER_MS;
	} else if (now_ms >= s->save_due_ms) {
		s->save_due_ms = INT64_MAX;
		orders_want_save(s, f->by);
	}
}

static void look_for_order(struct shepherd *s, const struct switch_file *f)
{
	char text[320];

	if (!f)
		return;
	switch_describe(f, text, sizeof(text));
	if (switch_order(f->level) > s->switch_order)
		s->switch_order = switch_order(f->level);
	/* to a trainer a hold is the order to checkpoint and end */
	stop_ordered(s, f->level == SWITCH_KILL ? ORDER_KILL : ORDER_STOP, false, text);
}

/* While a look is due at once there is nothing to hear: a colleague may write all the time. */
int switch_watch_fd(const struct shepherd *s, int64_t now_ms)
{
	return s->switch_ms > now_ms + SETTLE_MS ? s->switch_fd : -1;
}

/* The folder itself, or where it was: of another in its place nothing will be told. */
static bool says_that_it_went(const char *events, size_t len)
{
	const struct inotify_event *event;

	for (size_t at = 0; at < len; at += sizeof(*event) + event->len) {
		event = (const struct inotify_event *)(events + at);
		if (event->mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED | IN_Q_OVERFLOW))
			return true;
	}
	return false;
}

void switch_watch_news(struct shepherd *s, int64_t now_ms)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	for (int i = 0; i < EVENT_READS && (n = read(s->switch_fd, events, sizeof(events))) > 0;
	     i++)
		if (says_that_it_went(events, (size_t)n))
			s->is_told_of_switches = false;
	if (s->switch_ms > now_ms + SETTLE_MS)
		s->switch_ms = now_ms + SETTLE_MS;
}

static void read_folder(struct shepherd *s, int dir, const struct switch_rules *rules,
			const struct switch_run *run, int64_t budget_ms, int64_t now_ms)
{
	struct err err = { 0 };
	int rc;

	if (!s->switch_reading && now_ms >= s->switch_pause_ms)
		s->switch_reading = switches_begin(dir, rules, run, &err);
	if (!s->switch_reading) {
		/* what was just told of waits no longer than the pause */
		if (now_ms < s->switch_pause_ms && s->switch_pause_ms < s->switch_ms)
			s->switch_ms = s->switch_pause_ms;
		return;
	}
	rc = switches_step(s->switch_reading, budget_ms, NULL, NULL, &err);
	look_for_order(s, switches_find(switches_so_far(s->switch_reading), run->name, run->group,
					run->owner));
	if (rc > 0) {
		s->switch_ms = now_ms + SETTLE_MS;
		return;
	}
	if (rc == 0)
		look_for_save(s, switches_so_far(s->switch_reading), now_ms);
	s->switch_pause_ms = now_ms + switches_pause_ms(s->switch_reading, PART);
	switch_watch_close(s);
}

/* What is wrong with the folder, and what does not count, is lbd's to tell. */
static void look(struct shepherd *s, int64_t budget_ms, int64_t now_ms)
{
	struct switch_rules rules = { .owner = geteuid(), .team = s->params.team };
	struct switch_run run = { s->params.run, s->params.group, s->params.owner };
	struct switch_file named;
	struct err err = { 0 };
	int dir;

	s->switch_ms = clock_next_round(now_ms, s->is_told_of_switches ? TOLD_LOOK_EVERY_MS
								       : LOOK_EVERY_MS);
	if (!s->params.switches)
		return;
	dir = switches_open(s->params.switches, &rules, &err);
	if (dir < 0) {
		switch_watch_close(s);
		return;
	}
	if (switches_lookup(dir, &rules, &run, &named))
		look_for_order(s, &named);
	read_folder(s, dir, &rules, &run, budget_ms, now_ms);
	if (s->save_due_ms > now_ms && s->save_due_ms < s->switch_ms)
		s->switch_ms = s->save_due_ms;
	close(dir);
}

void switch_watch_look(struct shepherd *s, int64_t now_ms)
{
	look(s, PIECE_MS, now_ms);
}

void switch_watch_look_at_all(struct shepherd *s, int64_t now_ms)
{
	switch_watch_close(s);
	s->switch_pause_ms = now_ms;
	look(s, WHOLE_MS, now_ms);
}

void switch_watch_close(struct shepherd *s)
{
	switches_end(s->switch_reading, NULL);
	s->switch_reading = NULL;
}

/* The job ends with lbrun in any case; but Slurm ends its steps on all nodes only on an order, and
 * "cancelled" is what people then see. An array goes with all its tasks: the switch means the run.
 * The controller may be away: not for long. */
void switch_watch_cancel_job(const struct shepherd *s)
{
	const char *array = getenv("SLURM_ARRAY_JOB_ID");
	const char *job = getenv("SLURM_JOB_ID"); /* none: it is not Slurm's, by whatever number */

	if (job && array)
		job = array;
	if (s->switch_order == ORDER_RUN || s->facts.ending.cause == CAUSE_COMPLETED || !job ||
	    !job[0])
		return;
	slurm_command((const char *[]){ "scancel", "--quiet", "--", job, NULL }, "/");
}
