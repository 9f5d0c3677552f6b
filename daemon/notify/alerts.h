/* SPDX-License-Identifier: MIT */
/* notify/ - tells people and other programs what happened, and that lbd lives.
 *
 * alerts.h - tells people what happened to their runs: a program of theirs, a web address, or both.
 *
 * Events are taken from the ledger in order, one at a time, and how far they were told is kept
 * there: an lbd that starts anew goes on where the last one stopped. Nothing here blocks the loop:
 * the hook is a process with a deadline, the web address is spoken to in a thread. What cannot be
 * told after some tries becomes an event itself. */
#ifndef DAEMON_NOTIFY_ALERTS_H
#define DAEMON_NOTIFY_ALERTS_H

#include "common/base/err.h"
#include "daemon/control/control.h"
#include "daemon/base/lbd.h"

struct alerts;

/* NULL without err when nothing is configured. */
struct alerts *alerts_open(struct lbd *lbd, struct err *err);
/* The verb notify_test: a test on its way; notify_told or notify_failed follows. */
json_t *alerts_test(struct request *r, struct err *err);
/* Drops what is under way; the memory goes when the loop has run the close callbacks. */
void alerts_close(struct alerts *alerts);

#endif
