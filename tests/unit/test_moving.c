/* SPDX-License-Identifier: MIT */
/* test_moving.c - when an attempt that runs well ends for the next one to have other nodes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/moving.h"
#include "daemon/engine/decide/reconcile.h"
#include "tests/unit/usual_policy.h"

enum { NOW = 10 * 1000 * 1000, A_MINUTE_AGO = NOW - 60 * 1000 };

static const struct job_status running_job = { .ref = { .job_id = 7 }, .phase = JOB_RUNNING };
static const struct job_status ending_job = { .phase = JOB_ENDING, .cause = CAUSE_TIMEOUT };

/* The macros give the usual facts; a case overrides what makes it special. */
#pragma GCC diagnostic ignored "-Woverride-init"

/* clang-format off */
#define ATTEMPT(run_state, attempt_state) \
	.f.state = (run_state), .f.has_attempt = true, .a.state = (attempt_state), \
	.a.watching_since_ms = A_MINUTE_AGO, .a.heard_ms = A_MINUTE_AGO, .f.poll_ms = NOW - 1, \
	.a.exit_code = -1
#define RUNNING    ATTEMPT(RUN_RUNNING, ATTEMPT_RUNNING), .a.job = { .job_id = 7 }, .a.claimed = true, \
		   .f.seen = &running_job
#define ENDED(why) ATTEMPT(RUN_RUNNING, ATTEMPT_ENDED), .a.cause = (why), .f.ever_trained = true
/* clang-format on */

/* What is known of a run, and of its newest attempt. */
struct known {
	struct facts f;
	struct attempt a;
};

static struct decision decide(const struct known *known, const struct policy *with)
{
	struct facts f = known->f;

	f.a = &known->a;
	return reconcile(&f, with, NOW);
}

/* A run with fewer nodes than it asks for: behind a new checkpoint the question, behind a yes its
 * end. */
#define SMALL RUNNING, .f.is_small = true, .f.ever_trained = true
#define ASKED(how, when) .a.room = { (how), (when), (when) + 1 }
static void when_it_grows_back(void **state)
{
	enum { AFTER_MS = 30 * 1000, SAVED = NOW - 2000, LATE = NOW - FRESH_MS - 1 };
	/* clang-format off */
	static const struct {
		const char *when;
		struct known known;
		enum decision_kind kind;
	} rows[] = {
		{ "it has saved nothing yet", { SMALL }, DECISION_WAIT },
		{ "it has just saved", { SMALL, .a.saved_ms = SAVED }, DECISION_ASK_ROOM },
		{ "that is long ago", { SMALL, .a.saved_ms = LATE }, DECISION_WAIT },
		{ "the question is open", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_OPEN, SAVED + 1) }, DECISION_WAIT },
		{ "there is room", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_OK, SAVED + 1) }, DECISION_GROW },
		{ "there was when it saved before", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_OK, SAVED - AFTER_MS) }, DECISION_ASK_ROOM },
		{ "and that is a moment ago", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_OK, SAVED - 1) }, DECISION_WAIT },
		{ "there is room, but the answer came late", { SMALL, .a.saved_ms = LATE, ASKED(CALL_OK, LATE + 1) }, DECISION_WAIT },
		{ "there is none", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_REFUSED, SAVED + 1) }, DECISION_WAIT },
		{ "Slurm does not answer", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_DOWN, SAVED + 1) }, DECISION_WAIT },
		{ "it was told to end", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_OK, SAVED + 1), .a.signalled = SIGTERM }, DECISION_WAIT },
		{ "a person chose where it goes on from", { SMALL, .a.saved_ms = SAVED, .f.goes_back = true }, DECISION_WAIT },
		{ "it has begun just now", { SMALL, .a.saved_ms = SAVED, .a.watching_since_ms = NOW - AFTER_MS + 1 }, DECISION_WAIT },
		{ "it has all nodes", { SMALL, .a.saved_ms = SAVED, .f.is_small = false }, DECISION_WAIT },
		{ "its job is ending", { SMALL, .a.saved_ms = SAVED, .f.seen = &ending_job, .a.ended_ms = NOW }, DECISION_WAIT },
		{ "somebody kills it", { SMALL, .a.saved_ms = SAVED, ASKED(CALL_OK, SAVED + 1), .f.wanted = ORDER_KILL }, DECISION_MOVE },
		/* whatever died meanwhile: lbrun's word is enough */
		{ "it ended for that", { SMALL, .f.exited = true, .a.exit.cause = CAUSE_PREEMPTED }, DECISION_END },
		{ "and the run goes on", { ENDED(CAUSE_PREEMPTED) }, DECISION_MOVE },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy with = policy;

		with.may_do_with_fewer = with.grows_back = true;
		with.fewer_after_ms = AFTER_MS;
		struct decision d = decide(&rows[i].known, &with);
		if (d.kind != rows[i].kind)
			fail_msg("%s: %s", rows[i].when, decision_name(d.kind));
		with.grows_back = false;
		d = decide(&rows[i].known, &with);
		if (d.kind == DECISION_ASK_ROOM || d.kind == DECISION_GROW)
			fail_msg("%s: %s although it is not to", rows[i].when,
				 decision_name(d.kind));
	}
}

/* Some of its nodes are set to drain: a checkpoint at once, behind one the question, behind a yes
 * its end. Others are reserved for maintenance: both while there is time. stop_grace is five
 * minutes. */
enum {
	SPARE = 60 * 1000,
	GRACE = 300 * 1000,
	SINCE = NOW - 5000, /* it is known that they drain */
	ASKED_AT = SINCE + 1,
	SAVED_AT = SINCE + 2,
	FAR = NOW + 2 * GRACE + SPARE, /* a reservation that is just far enough */
};
#define DRAINS RUNNING, .a.leaving = { .draining = 1, .drains_ms = SINCE }
#define RESERVED(when) RUNNING, .a.leaving.begins_ms = (when)
#define SAVE(how) .a.save = { (how), ASKED_AT, ASKED_AT }
#define ROOM(how) .a.room = { (how), SAVED_AT + 1, SAVED_AT + 2 }

static const struct {
	const char *when;
	struct known known;
	enum decision_kind kind, stays; /* stays: restart.leave = false */
	int64_t at_ms;                  /* WAIT: until then; 0: whatever */
} leaving[] = {
	/* clang-format off */
	{ "all nodes stay", { RUNNING }, DECISION_WAIT, DECISION_WAIT, INT64_MAX },

	{ "a node drains", { DRAINS }, DECISION_SAVE, DECISION_SAVE, 0 },
	{ "the trainer is asked", { DRAINS, SAVE(CALL_OK) }, DECISION_WAIT, DECISION_WAIT, INT64_MAX },
	{ "it could not be asked", { DRAINS, SAVE(CALL_DOWN) }, DECISION_WAIT, DECISION_WAIT, ASKED_AT + RECHECK_MS },
	{ "nor for long", { DRAINS, .a.save = { CALL_DOWN, ASKED_AT, NOW - RECHECK_MS } }, DECISION_SAVE, DECISION_SAVE, 0 },
	{ "it was for the node before", { DRAINS, .a.save = { CALL_OK, SINCE - 1, SINCE } }, DECISION_SAVE, DECISION_SAVE, 0 },
	{ "it saved before that was known", { DRAINS, SAVE(CALL_OK), .a.saved_ms = SINCE - 1 }, DECISION_WAIT, DECISION_WAIT, INT64_MAX },
	{ "it has saved", { DRAINS, SAVE(CALL_OK), .a.saved_ms = SAVED_AT }, DECISION_ASK_ROOM, DECISION_WAIT, 0 },
	{ "there are others", { DRAINS, SAVE(CALL_OK), .a.saved_ms = SAVED_AT, ROOM(CALL_OK) }, DECISION_LEAVE, DECISION_WAIT, 0 },
	{ "there are none", { DRAINS, SAVE(CALL_OK), .a.saved_ms = SAVED_AT, ROOM(CALL_REFUSED) }, DECISION_WAIT, DECISION_WAIT, INT64_MAX },
	{ "and it saves again, soon", { DRAINS, SAVE(CALL_OK), .a.saved_ms = NOW - 1, ROOM(CALL_REFUSED) }, DECISION_WAIT, DECISION_WAIT, 0 },
	{ "and it saves again, later", { DRAINS, .a.leaving.drains_ms = A_MINUTE_AGO - 9, .a.save = { CALL_OK, A_MINUTE_AGO - 8, 0 },
	  .a.room = { CALL_REFUSED, A_MINUTE_AGO - 1, A_MINUTE_AGO }, .a.saved_ms = NOW - 1 }, DECISION_ASK_ROOM, DECISION_WAIT, 0 },
	{ "a person chose where it goes on from", { DRAINS, SAVE(CALL_OK), .a.saved_ms = SAVED_AT, ROOM(CALL_OK), .f.goes_back = true },
	  DECISION_WAIT, DECISION_WAIT, 0 },
	{ "it was told to end", { DRAINS, .a.signalled = SIGTERM }, DECISION_WAIT, DECISION_WAIT, 0 },
	{ "its lbrun has not begun", { DRAINS, .a.claimed = false }, DECISION_WAIT, DECISION_WAIT, 0 },
	{ "its job is ending", { DRAINS, .f.seen = &ending_job, .a.ended_ms = NOW }, DECISION_WAIT, DECISION_WAIT, 0 },
	{ "somebody kills it", { DRAINS, SAVE(CALL_OK), .a.saved_ms = SAVED_AT, ROOM(CALL_OK), .f.wanted = ORDER_KILL }, DECISION_MOVE, DECISION_MOVE, 0 },

	{ "maintenance, far away", { RESERVED(FAR + 1) }, DECISION_WAIT, DECISION_WAIT, NOW + 1 },
	{ "maintenance, near", { RESERVED(FAR) }, DECISION_SAVE, DECISION_SAVE, 0 },
	{ "the trainer is asked in time", { RESERVED(FAR - 10000), SAVE(CALL_OK) }, DECISION_WAIT, DECISION_WAIT, 0 },
	{ "it has saved in time", { RESERVED(FAR - 10000), SAVE(CALL_OK), .a.saved_ms = SAVED_AT }, DECISION_LEAVE, DECISION_WAIT, 0 },
	{ "it had saved before", { RESERVED(FAR - 10000), SAVE(CALL_OK), .a.saved_ms = ASKED_AT - 1 }, DECISION_WAIT, DECISION_WAIT, NOW + GRACE - 10000 },
	{ "it saves nothing", { RESERVED(NOW + GRACE + SPARE), .a.save = { CALL_OK, NOW - GRACE, 0 } }, DECISION_LEAVE, DECISION_WAIT, 0 },
	{ "that is for later", { RESERVED(NOW + GRACE + SPARE + 1), .a.save = { CALL_OK, NOW - GRACE + 1, 0 } }, DECISION_WAIT, DECISION_WAIT, NOW + 1 },
	{ "it has begun", { RESERVED(1), SAVE(CALL_OK) }, DECISION_LEAVE, DECISION_WAIT, 0 },
	{ "the order could not be left", { RESERVED(NOW), SAVE(CALL_OK), .a.signal = { CALL_DOWN, NOW - 9, NOW - 9 } }, DECISION_WAIT, DECISION_WAIT, NOW - 9 + RECHECK_MS },
	{ "nor for long", { RESERVED(NOW), SAVE(CALL_OK), .a.signal = { CALL_DOWN, NOW - 9, NOW - RECHECK_MS } }, DECISION_LEAVE, DECISION_WAIT, 0 },
	{ "it may not be told", { RESERVED(NOW), SAVE(CALL_OK), .f.goes_back = true }, DECISION_WAIT, DECISION_WAIT, 0 },

	{ "a node drains, and maintenance is far", { DRAINS, .a.leaving.begins_ms = FAR + 5, SAVE(CALL_OK) }, DECISION_WAIT, DECISION_WAIT, NOW + 5 },
	/* whatever died meanwhile: lbrun's word is enough */
	{ "it ended for that", { DRAINS, .f.exited = true, .a.exit.cause = CAUSE_PREEMPTED }, DECISION_END, DECISION_END, 0 },
	/* clang-format on */
};

static void when_it_leaves(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(leaving) / sizeof(leaving[0]); i++) {
		struct policy with = policy;
		struct decision d;

		with.leaves = true;
		d = decide(&leaving[i].known, &with);
		if (d.kind != leaving[i].kind)
			fail_msg("%s: %s", leaving[i].when, decision_name(d.kind));
		if (d.kind == DECISION_WAIT && d.at_ms <= NOW)
			fail_msg("%s: a busy loop", leaving[i].when);
		if (d.kind == DECISION_WAIT && leaving[i].at_ms > 0 && d.at_ms != leaving[i].at_ms)
			fail_msg("%s: waits %lld ms", leaving[i].when, (long long)(d.at_ms - NOW));
		with.leaves = false;
		d = decide(&leaving[i].known, &with);
		if (d.kind != leaving[i].stays)
			fail_msg("%s, and it is to stay: %s", leaving[i].when,
				 decision_name(d.kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(when_it_grows_back),
		cmocka_unit_test(when_it_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
