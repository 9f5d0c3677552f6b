/* SPDX-License-Identifier: MIT */
/* lock.h - one lbd per $LB_HOME. */
#ifndef DAEMON_LOCK_H
#define DAEMON_LOCK_H

#include "common/err.h"

/* Takes HOME/lbd.lock and writes into it who holds it. Returns a descriptor that holds the lock until
 * the process ends, or -1 with err (ERR_LOCKED names the holder). */
int lock_take(const char *home, struct err *err);

#endif
