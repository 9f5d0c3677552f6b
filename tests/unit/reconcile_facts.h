/* SPDX-License-Identifier: MIT */
/* reconcile_facts.h - the usual facts of a run, of which a test overrides what makes it special. */
#ifndef TESTS_UNIT_RECONCILE_FACTS_H
#define TESTS_UNIT_RECONCILE_FACTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/engine/decide/reconcile.h"
#include "tests/unit/usual_policy.h"

enum { NOW = 1000 * 1000, A_MINUTE_AGO = NOW - 60 * 1000, LONG_AGO = NOW - LOST_MS - 1000 };

static const struct job_status job_without_node = { .ref = { .job_id = 7 },
						    .phase = JOB_PENDING,
						    .reason = "BadConstraints" };
static const struct job_status cancelled_job = { .phase = JOB_ENDED, .cause = CAUSE_KILLED };

/* A case says anew what is special of it. */
#pragma GCC diagnostic ignored "-Woverride-init"

/* An attempt in this state, begun a minute ago; the scheduler was asked a moment ago. */
/* clang-format off */
#define ATTEMPT(run_state, attempt_state) \
	.f.state = (run_state), .f.has_attempt = true, .a.state = (attempt_state), \
	.a.watching_since_ms = A_MINUTE_AGO, .a.heard_ms = A_MINUTE_AGO, .f.poll_ms = NOW - 1, \
	.a.exit_code = -1
#define SUBMITTING ATTEMPT(RUN_SUBMITTING, ATTEMPT_INTENT)
#define HELD       ATTEMPT(RUN_SUBMITTING, ATTEMPT_HELD), .a.job = { .job_id = 7 }
#define QUEUED     ATTEMPT(RUN_QUEUED, ATTEMPT_QUEUED), .a.job = { .job_id = 7 }
#define RUNNING    ATTEMPT(RUN_RUNNING, ATTEMPT_RUNNING), .a.job = { .job_id = 7 }, .a.claimed = true
#define STOPPING   ATTEMPT(RUN_STOPPING, ATTEMPT_RUNNING), .a.job = { .job_id = 7 }, .a.claimed = true, \
		   .f.wanted = ORDER_KILL, .a.ordered = ORDER_KILL
#define HOLDING    ATTEMPT(RUN_STOPPING, ATTEMPT_RUNNING), .a.job = { .job_id = 7 }, .a.claimed = true, \
		   .f.wanted = ORDER_HOLD, .a.ordered = ORDER_HOLD
#define LIMIT_MS   30000
#define UNHEARD(ms) .a.unheard = { .since_ms = (ms), .limit_ms = LIMIT_MS, .text = "not heard" }
#define ENDED(why) ATTEMPT(RUN_RUNNING, ATTEMPT_ENDED), .a.cause = (why), .f.ever_trained = true
/* clang-format on */

/* What is known of a run, and of its newest attempt. */
struct known {
	struct facts f;
	struct attempt a;
};

static struct decision decide(const struct known *known)
{
	struct facts f = known->f;

	f.a = &known->a;
	return reconcile(&f, &policy, NOW);
}

/* END: cause; MOVE: state; SIGNAL: signal; OBEY: order. */
static int detail_of(const struct decision *d)
{
	switch (d->kind) {
	case DECISION_END:
		return (int)d->cause;
	case DECISION_MOVE:
		return (int)d->to;
	case DECISION_SIGNAL:
		return d->signo;
	case DECISION_OBEY:
		return (int)d->order;
	default:
		return 0;
	}
}

#endif
