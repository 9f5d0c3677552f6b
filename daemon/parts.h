/* SPDX-License-Identifier: MIT */
/* parts.h - the parts of lbd, put together in order. -1 with err: the process ends. */
#ifndef DAEMON_PARTS_H
#define DAEMON_PARTS_H

#include "common/base/err.h"
#include "daemon/loop.h"

/* The folder, its lock and the ledger. */
int open_ledger(struct daemon *d, struct err *err);
/* The loop and all that it drives. */
int open_parts(struct daemon *d, struct err *err);

#endif
