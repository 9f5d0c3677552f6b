/* SPDX-License-Identifier: MIT */
/* grow.c - when to ask for the missing nodes, and when to begin anew with them. */
#include "daemon/engine/grow.h"

#include <stddef.h>

static struct decision decide(enum decision_kind kind, const struct facts *f)
{
	return (struct decision){ .kind = kind, .job = f->a->job, .exit_code = -1 };
}

static struct decision wait_until(int64_t at_ms)
{
	return (struct decision){ .kind = DECISION_WAIT, .at_ms = at_ms };
}

bool may_grow(const struct facts *f, const struct policy *policy)
{
	return policy->grows_back && f->is_small && !f->goes_back && !f->exited && f->a->claimed &&
	       f->a->state == ATTEMPT_RUNNING && f->a->signalled == 0 && f->seen &&
	       f->seen->phase == JOB_RUNNING;
}

/* Not before it has trained for as long as it would wait for nodes that others take meanwhile. */
static int64_t ask_ms(const struct facts *f, const struct policy *policy)
{
	int64_t least_ms = f->a->watching_since_ms + policy->fewer_after_ms;
	int64_t pause_ms = policy->fewer_after_ms < GROW_ASK_MS ? policy->fewer_after_ms
								: GROW_ASK_MS;
	int64_t again_ms = f->a->room.state == CALL_NONE ? 0 : f->a->room.made_ms + pause_ms;

	return least_ms > again_ms ? least_ms : again_ms;
}

struct decision grow(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	bool is_fresh = f->a->saved_ms > 0 && now_ms <= f->a->saved_ms + GROW_FRESH_MS;
	bool is_asked = f->a->room.state != CALL_NONE && f->a->room.made_ms >= f->a->saved_ms;

	if (!is_fresh || f->a->room.state == CALL_OPEN)
		return wait_until(INT64_MAX);
	if (is_asked)
		return f->a->room.state == CALL_OK ? decide(DECISION_GROW, f)
						   : wait_until(INT64_MAX);
	return now_ms < ask_ms(f, policy) ? wait_until(ask_ms(f, policy))
					  : decide(DECISION_ASK_ROOM, f);
}
