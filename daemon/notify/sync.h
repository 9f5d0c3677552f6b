/* SPDX-License-Identifier: MIT */
/* sync.h - `lbctl sync` every now and then, for the trackers of [sync]: a process of its own, so
 * that a tracker that is slow or broken holds nothing up. */
#ifndef DAEMON_NOTIFY_SYNC_H
#define DAEMON_NOTIFY_SYNC_H

#include "daemon/base/lbd.h"

struct sync;

/* NULL when nothing is configured. */
struct sync *sync_open(struct lbd *lbd);
/* Ends one that is at work; the memory goes when the loop has run the close callbacks. */
void sync_close(struct sync *sync);

#endif
