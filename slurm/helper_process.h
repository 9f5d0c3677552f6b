/* SPDX-License-Identifier: MIT */
/* helper_process.h - a child process that is spoken to in lines, and that may hang or die at any
 * time.
 *
 * One process at a time; a new one is started when the owner says so. Its stderr is ours. Events
 * come from the loop, never from inside a call. */
#ifndef SLURM_HELPER_PROCESS_H
#define SLURM_HELPER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/base/err.h"

struct helper_events {
	/* a string, without its newline; it may be changed */
	void (*on_line)(void *arg, char *line, size_t len);
	/* The process is gone, or sends no more; every line it had sent was delivered before. */
	void (*on_end)(void *arg);
};

struct helper;

/* Which program shall serve from the next start on? `unfit`: one that cannot, for good; NULL: the
 * last one ended before it said a word, or did not start. Owned path; NULL: the same again. */
typedef char *(*helper_find)(void *arg, const char *unfit);

/* The program gets our process id as its only argument. Longer lines than max_line end it. */
struct helper *helper_create(uv_loop_t *loop, const char *path, size_t max_line,
			     const struct helper_events *events, void *arg);
/* From now on `find` is asked when there is doubt; it runs inside of helper_start. */
void helper_on_doubt(struct helper *h, helper_find find, void *arg);
/* It runs, but speaks another version than the other side: it is killed, and another one sought. */
void helper_is_unfit(struct helper *h);
bool helper_is_running(const struct helper *h);
int helper_start(struct helper *h, struct err *err);
/* Takes the memory, and wipes it once sent. Only while it runs. */
void helper_send(struct helper *h, char *line, size_t len);
/* SIGKILL; on_end follows. */
void helper_kill(struct helper *h);
/* For a process that even SIGKILL does not end soon (stuck in the kernel): it counts as gone from
 * now on, without on_end, and is reaped whenever it dies. */
void helper_abandon(struct helper *h);
/* Kills it, releases everything, then calls `closed`. No more events. */
void helper_close(struct helper *h, void (*closed)(void *arg), void *arg);

#endif
