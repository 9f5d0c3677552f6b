/* SPDX-License-Identifier: MIT */
/* alerts.h - tells people what happened to their runs: a program of theirs, a web address, or both.
 *
 * Events are taken from the ledger in order, one at a time, and how far they were told is kept there:
 * an lbd that starts anew goes on where the last one stopped. Nothing here blocks the loop: the hook is
 * a process with a deadline, the web address is spoken to in a thread. What cannot be told after some
 * tries becomes an event itself. */
#ifndef DAEMON_ALERTS_H
#define DAEMON_ALERTS_H

#include "common/err.h"
#include "daemon/lbd.h"

struct alerts;

/* NULL without err when nothing is configured. */
struct alerts *alerts_open(struct lbd *lbd, struct err *err);
/* Drops what is under way; the memory goes when the loop has run the close callbacks. */
void alerts_close(struct alerts *alerts);

#endif
