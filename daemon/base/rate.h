/* SPDX-License-Identifier: MIT */
/* rate.h - how often trouble came lately, to all runs of the ledger. */
#ifndef DAEMON_BASE_RATE_H
#define DAEMON_BASE_RATE_H

#include "common/checkpoint/interval.h"
#include "daemon/base/lbd.h"

/* As of at most max_age_ms ago: half a year is read anew otherwise, and where that takes long, not
 * again at once. What cannot be read is as it was. Borrowed. */
const struct troubles *rate_of_troubles(struct lbd *lbd, int64_t max_age_ms);

#endif
