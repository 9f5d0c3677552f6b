/* SPDX-License-Identifier: MIT */
/* local_ranks.h - several ranks on this machine, without a launcher: one process forks them and
 * watches over them. */
#ifndef LBWORKER_LOCAL_RANKS_H
#define LBWORKER_LOCAL_RANKS_H

#include "common/base/err.h"

/* Returns in each rank its number, from 0, with *room for ranks_open; in the process that called
 * -1, once all have ended, with *status, its own exit status: the highest of all; of one that
 * was killed, or ended without a word, err has a line, the others have told themselves. Also -1
 * with err and *status 1 when they could not be started. SIGTERM and SIGINT are handed on; a rank
 * that ends by them counts as 128 and the signal's number. Once one has failed the others have a
 * few seconds to leave. */
int local_ranks_start(int count, void **room, int *status, struct err *err);

#endif
