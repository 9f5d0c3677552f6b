/* SPDX-License-Identifier: MIT */
/* moving.c - when to ask for other nodes, when for a last checkpoint, and when to begin anew. */
#include "daemon/engine/decide/moving.h"

#include "daemon/engine/decide/decision.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Its trainer may be asked for something, and nobody has told it to end. */
static bool runs_well(const struct facts *f)
{
	return !f->exited && f->a->claimed && f->a->state == ATTEMPT_RUNNING &&
	       f->a->signalled == 0 && f->seen && f->seen->phase == JOB_RUNNING;
}

/* Behind a checkpoint the scheduler is asked for the nodes, not before `least_ms`; if they would be
 * given, `then`. */
static struct decision behind_checkpoint(const struct facts *f, enum decision_kind then,
					 int64_t least_ms, int64_t pause_ms, int64_t now_ms)
{
	const struct call *room = &f->a->room;
	bool is_fresh = f->a->saved_ms > 0 && now_ms <= f->a->saved_ms + FRESH_MS;
	bool is_asked = room->state != CALL_NONE && room->made_ms >= f->a->saved_ms;
	int64_t ask_ms = later(least_ms, room->state == CALL_NONE ? 0 : room->made_ms + pause_ms);

	if (!is_fresh || room->state == CALL_OPEN)
		return wait_for_news();
	if (is_asked)
		return room->state == CALL_OK ? decide(then, f) : wait_for_news();
	return now_ms < ask_ms ? wait_until(ask_ms) : decide(DECISION_ASK_ROOM, f);
}

/* --- to grow back ----------------------------------------------------------------------------- */

bool may_grow(const struct facts *f, const struct policy *policy)
{
	return policy->grows_back && f->is_small && !f->goes_back && runs_well(f);
}

/* Not before it has trained for as long as it would wait for nodes that others take meanwhile. */
struct decision grow(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	int64_t pause_ms = policy->fewer_after_ms < GROW_ASK_MS ? policy->fewer_after_ms
								: GROW_ASK_MS;

	return behind_checkpoint(f, DECISION_GROW, f->a->watching_since_ms + policy->fewer_after_ms,
				 pause_ms, now_ms);
}

/* --- to leave in time ------------------------------------------------------------------------- */

bool may_leave(const struct facts *f)
{
	return (f->a->leaving.draining > 0 || f->a->leaving.begins_ms > 0) && runs_well(f);
}

/* To end, perhaps with a checkpoint, before that begins. */
static int64_t last_ms(const struct facts *f, const struct policy *policy)
{
	return f->a->leaving.begins_ms - policy->stop_grace_ms - LEAVE_SPARE_MS;
}

/* When the checkpoint is asked for: as long before as it may take. */
static int64_t reserved_due_ms(const struct facts *f, const struct policy *policy)
{
	return last_ms(f, policy) - policy->stop_grace_ms;
}

/* A trainer that could not be asked (the disk was full) is asked again. */
static bool is_asked(const struct facts *f, int64_t due_ms, int64_t now_ms)
{
	const struct call *save = &f->a->save;

	return save->state != CALL_NONE && save->made_ms >= due_ms &&
	       (save->state == CALL_OK || now_ms < save->reply_ms + RECHECK_MS);
}

static struct decision save(const struct facts *f, const struct policy *policy, int64_t due_ms,
			    int64_t now_ms, struct decision then)
{
	int64_t again_ms = f->a->save.reply_ms + RECHECK_MS;

	if (!is_asked(f, due_ms, now_ms))
		return decide(DECISION_SAVE, f);
	/* where it goes on from was chosen for its next launch only, wherever that is */
	if (!policy->leaves || f->goes_back)
		then = wait_for_news();
	if (f->a->save.state != CALL_OK && then.kind == DECISION_WAIT && again_ms < then.at_ms)
		then.at_ms = again_ms;
	return then;
}

static struct decision from_draining(const struct facts *f, int64_t now_ms)
{
	return f->a->saved_ms < f->a->leaving.drains_ms
		       ? wait_for_news()
		       : behind_checkpoint(f, DECISION_LEAVE, 0, LEAVE_ASK_MS, now_ms);
}

struct decision leave(const struct facts *f, const struct policy *policy, int64_t now_ms)
{
	const struct leaving *l = &f->a->leaving;
	int64_t due_ms = reserved_due_ms(f, policy), end_ms = last_ms(f, policy);
	int64_t again_ms = f->a->signal.reply_ms + RECHECK_MS;
	struct decision d;

	/* the order could not be left (the disk is full) */
	if (f->a->signal.state == CALL_DOWN && now_ms < again_ms)
		return wait_until(again_ms);
	if (l->begins_ms > 0 && now_ms >= due_ms) {
		bool is_time = f->a->saved_ms >= later(due_ms, f->a->save.made_ms) ||
			       now_ms >= end_ms;

		return save(f, policy, due_ms, now_ms,
			    is_time ? decide(DECISION_LEAVE, f) : wait_until(end_ms));
	}
	d = l->draining == 0 ? wait_for_news()
			     : save(f, policy, l->drains_ms, now_ms, from_draining(f, now_ms));
	if (l->begins_ms > 0 && d.kind == DECISION_WAIT && due_ms < d.at_ms)
		d.at_ms = due_ms;
	return d;
}
