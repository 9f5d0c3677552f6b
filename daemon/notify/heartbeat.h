/* SPDX-License-Identifier: MIT */
/* heartbeat.h - a sign of life for those who watch from outside: a file is written, an address
 * asked, as long as lbd really sees the scheduler. When the signs stop, lbd, its host or Slurm is
 * in trouble, and whoever watches (a cron job that looks at the file's age, a "healthcheck"
 * service) says so. */
#ifndef DAEMON_NOTIFY_HEARTBEAT_H
#define DAEMON_NOTIFY_HEARTBEAT_H

#include "daemon/base/lbd.h"

struct heartbeat;

/* NULL when nothing is configured. */
struct heartbeat *heartbeat_open(struct lbd *lbd);
/* Drops what is under way; the memory goes when the loop has run the close callbacks. */
void heartbeat_close(struct heartbeat *heartbeat);

#endif
