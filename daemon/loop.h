/* SPDX-License-Identifier: MIT */
/* loop.h - lbd's loop: its turns, its signals, and the way down. */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/strv.h"
#include "daemon/base/lbd.h"

/* Everything that the loop drives; `lbd` is what the handlers see of it. */
struct daemon {
	struct lbd lbd;
	uv_loop_t loop;
	uv_timer_t turn, watchdog, lease, hand_over;
	uv_signal_t sigterm, sigint, sighup;
	uv_idle_t again;    /* a turn that is due at once */
	int64_t hung_up_ms; /* when SIGHUP came last; 0 = never */
	bool stopping, failed, is_superseded;
	bool is_told;                     /* to end, by a signal: the last one says why */
	bool is_in_doubt;                 /* whether its lease is still its own cannot be seen */
	bool is_background, begins_again; /* once this process has ended (process/again.h) */
	const char *why;                  /* it ends; NULL: it serves */
	struct strv unfit_helpers;        /* those that this Slurm does not understand */
};

/* -1: there is no room for its threads. */
int loop_open(struct daemon *d, struct err *err);
/* All parts are there: the first turn comes, and who waits for lbd (--ready-fd, systemd) is told.
 * Ends at `until_ms` (wall clock; 0: never). */
void loop_start(struct daemon *d, int64_t until_ms, int ready_fd);
/* After its end: signals that came while all else was closed are heard, too, and change d->why. */
void loop_hear_last(struct daemon *d);
/* Then; from now on signals do what they do to any process. */
void loop_close(struct daemon *d);
/* Something is known that was not: a turn is due. `arg` is the daemon. */
void loop_turn_soon(void *arg);

#endif
