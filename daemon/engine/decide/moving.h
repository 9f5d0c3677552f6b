/* SPDX-License-Identifier: MIT */
/* moving.h - when an attempt that runs well ends, for the next one to have other nodes. Pure; a
 * part of reconcile.
 *
 * To grow back (restart.grow_back): a run that trains on fewer nodes than its spec names. Behind
 * each new checkpoint the scheduler is asked whether the missing nodes would be given at once, with
 * nobody in line for them; if so the next attempt asks for all.
 *
 * To leave in time (struct leaving): nodes of it are set to drain, or a maintenance reservation
 * begins on them. The trainer is asked for a checkpoint. From nodes that drain it goes behind that
 * or a later one as soon as others would be given at once: nobody knows when they are taken away.
 * From a reservation it goes behind the checkpoint, and in any case while there is time to end with
 * one.
 *
 * The order in the attempt's folder says that the run goes on, so that nothing has to be
 * remembered: whatever dies in between, lbrun's record ends the attempt as preempted. */
#ifndef DAEMON_ENGINE_DECIDE_MOVING_H
#define DAEMON_ENGINE_DECIDE_MOVING_H

#include "daemon/engine/decide/reconcile.h"

enum {
	FRESH_MS = 60 * 1000, /* so long after a checkpoint an attempt may end: work is lost */
	/* so long the nodes of the attempt that ended for it may take to be free again (epilogs):
	 * less must not make the next one small */
	GROW_SETTLE_MS = 2 * 60 * 1000,
	GROW_ASK_MS = 60 * 1000, /* between two questions, or fewer_after_ms where that is less */
	LEAVE_ASK_MS = 10 * 1000,
	LEAVE_SPARE_MS = 60 * 1000, /* before a reservation, for the end of the job */
};

bool may_grow(const struct facts *f, const struct policy *policy);
/* ASK_ROOM, GROW, or WAIT. */
struct decision grow(const struct facts *f, const struct policy *policy, int64_t now_ms);

bool may_leave(const struct facts *f);
/* SAVE, ASK_ROOM, LEAVE, or WAIT. */
struct decision leave(const struct facts *f, const struct policy *policy, int64_t now_ms);

#endif
