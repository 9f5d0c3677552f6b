/* SPDX-License-Identifier: MIT */
/* prequeue.h - restart.prequeue: the job of the next attempt waits in the queue behind the running
 * one, so that it is old when it is needed. Pure, as reconcile.h, and asked after it.
 *
 * Such an attempt goes up the ladder of a submission as far as HELD, and stays there: the scheduler
 * cannot start it, so there is never a second trainer. When the run's attempt has ended and the run
 * goes on, the prequeued one becomes its newest attempt, on whatever step of the ladder it stands,
 * and reconcile releases it. When the run does not go on (completed, failed, killed, on hold) it is
 * dropped: its row goes, and the next poll finds a held job that belongs to nobody, which is
 * cancelled on sight. */
#ifndef DAEMON_ENGINE_DECIDE_PREQUEUE_H
#define DAEMON_ENGINE_DECIDE_PREQUEUE_H

#include "daemon/engine/decide/reconcile.h"

enum {
	PREQUEUE_AGAIN_MS = 10 * 60 * 1000, /* after one that came to nothing */
	PREQUEUE_WORTH_MS = 5 * 60 * 1000,  /* of waiting in line */
};

/* restart.prequeue, an enum spec_prequeue. By itself it is made where held jobs gain age, and the
 * run has once waited so long for its turn; one that is there stays: after a start of lbd nobody
 * knows yet what ages. */
bool prequeue_is_worth(int prequeue, bool has_one, bool ages_held, int64_t longest_wait_ms);

/* `run`: the facts of the run and its newest attempt. `prequeued`: the same run with that one in
 * the attempt's place; NULL = there is none. `not_before_ms`: monotonic, for a new one. NEW_ATTEMPT
 * makes one, END drops it (`text` says why; cause killed: the run does not want one, anything else:
 * it came to nothing), the rest is about it as about any attempt. */
struct decision prequeue(const struct facts *run, const struct facts *prequeued,
			 int64_t not_before_ms, const struct policy *policy, int64_t now_ms);

#endif
