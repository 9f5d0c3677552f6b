/* SPDX-License-Identifier: MIT */
/* log_keeper.h - the output of runs that ended long ago: compressed, later removed.
 *
 * It touches only files of names that lbd and lbrun make, in folders of runs of the ledger, and
 * nothing through a link. The work is done in a thread; a run is looked at once for each. */
#ifndef DAEMON_NOTIFY_LOG_KEEPER_H
#define DAEMON_NOTIFY_LOG_KEEPER_H

#include "daemon/base/lbd.h"

/* NULL: the config wants neither. */
struct log_keeper *log_keeper_open(struct lbd *lbd);
/* The memory goes when the loop has run the close callbacks. */
void log_keeper_close(struct log_keeper *keeper);

#endif
