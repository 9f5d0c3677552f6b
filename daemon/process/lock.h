/* SPDX-License-Identifier: MIT */
/* process/ - lbd as a process: alone in its folder, in the background, under systemd, in a job.
 *
 * lock.h - one lbd per $LB_HOME, on every machine that sees the folder.
 *
 * HOME/lbd.lock is locked (flock), which is enough where locks work. HOME/lbd.lease
 * (common/run/lease.h) is for where they do not, and for the time in which a dead machine's lock is
 * not known to be free: a holder on another machine is believed to live until its lease has not
 * been renewed for its length, by our own clock. Who takes over claims the next generation with a
 * file that only one can make; an lbd that finds another's lease in place of its own ends. */
#ifndef DAEMON_PROCESS_LOCK_H
#define DAEMON_PROCESS_LOCK_H

#include <stdint.h>

#include "common/base/err.h"

struct lock;

/* Returns when the folder is ours; waits for as long as the lease of a holder elsewhere may last.
 * NULL with err (ERR_LOCKED names the holder). `log`: path of our log, NULL = none. */
struct lock *lock_take(const char *home, int64_t lease_ms, const char *log, struct err *err);

/* 0: the folder is still ours. -1: ERR_LOCKED, another lbd has it, and for good; ERR_IO, it cannot
 * be told at present. Cheap enough to be asked before every commit; a `void *` so that it can
 * be. */
int lock_check(void *lock, struct err *err);
/* To be called several times in a lease. -1 as lock_check. */
int lock_renew(struct lock *lock, struct err *err);

/* Whoever comes next need not wait. `why` is one line. NULL lock: nothing. */
void lock_release(struct lock *lock, const char *why);

#endif
