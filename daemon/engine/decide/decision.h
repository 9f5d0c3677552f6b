/* SPDX-License-Identifier: MIT */
/* decision.h - the decisions that all pure cores make. */
#ifndef DAEMON_ENGINE_DECIDE_DECISION_H
#define DAEMON_ENGINE_DECIDE_DECISION_H

#include "daemon/engine/decide/reconcile.h"

/* Something is to be done about the attempt's job. */
static inline struct decision decide(enum decision_kind kind, const struct facts *f)
{
	return (struct decision){ .kind = kind, .job = f->a->job, .exit_code = -1 };
}

/* Nothing is, before then. */
static inline struct decision wait_until(int64_t at_ms)
{
	return (struct decision){ .kind = DECISION_WAIT, .at_ms = at_ms };
}

/* Only news (a reply, a poll, a spool line, an order) can change the answer. */
static inline struct decision wait_for_news(void)
{
	return wait_until(INT64_MAX);
}

#endif
