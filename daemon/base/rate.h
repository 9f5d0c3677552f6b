/* SPDX-License-Identifier: MIT */
/* rate.h - how often trouble came lately, to all runs of the ledger. */
#ifndef DAEMON_BASE_RATE_H
#define DAEMON_BASE_RATE_H

#include "common/checkpoint/interval.h"
#include "daemon/base/lbd.h"

/* Read from the ledger at most once an hour; what cannot be read is taken as nothing seen. Borrowed. */
const struct troubles *rate_of_troubles(struct lbd *lbd);

#endif
