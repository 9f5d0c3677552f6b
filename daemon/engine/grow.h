/* SPDX-License-Identifier: MIT */
/* grow.h - restart.grow_back: a run that trains on fewer nodes than its spec names begins anew with all
 * of them. Pure; a part of reconcile.
 *
 * Behind each new checkpoint the scheduler is asked whether the missing nodes would be given at once, with
 * nobody in line for them. If so the attempt is told to end, as it would be before its time limit, and the
 * next one asks for all nodes; else it trains on. The order in its folder says that the run goes on, so that
 * nothing has to be remembered: whatever dies in between, lbrun's record ends the attempt as preempted. */
#ifndef DAEMON_ENGINE_GROW_H
#define DAEMON_ENGINE_GROW_H

#include "daemon/engine/reconcile.h"

enum {
	GROW_FRESH_MS = 60 * 1000, /* so long after a checkpoint an attempt may end: work is lost */
	/* so long the nodes of the attempt that ended for it may take to be free again (epilogs): less
	 * must not make the next one small */
	GROW_SETTLE_MS = 2 * 60 * 1000,
	GROW_ASK_MS = 60 * 1000, /* between two questions, or fewer_after_ms where that is less */
};

bool may_grow(const struct facts *f, const struct policy *policy);
/* ASK_ROOM, GROW, or WAIT. */
struct decision grow(const struct facts *f, const struct policy *policy, int64_t now_ms);

#endif
