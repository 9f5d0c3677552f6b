/* SPDX-License-Identifier: MIT */
/* test_prequeue.c - when a next attempt's job is put in line, and when it is taken away again: a
 * table of facts and the decision they must give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/prequeue.h"

enum { NOW = 1000 * 1000, A_MINUTE_AGO = NOW - 60 * 1000 };

static const struct policy policy = { .prequeue = true }, without = { .prequeue = false };

static const struct job_status running = { .ref = { .job_id = 7 }, .phase = JOB_RUNNING };
static const struct job_status pending = { .ref = { .job_id = 8 }, .phase = JOB_PENDING };
static const struct job_status held = { .ref = { .job_id = 8 }, .phase = JOB_HELD };
static const struct job_status cancelled = { .ref = { .job_id = 8 },
					     .phase = JOB_ENDED,
					     .cause = CAUSE_KILLED };

/* The macros give the usual facts; a case overrides what makes it special. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define RUN(run_state, attempt_state) \
	.f.state = (run_state), .f.has_attempt = true, .a.state = (attempt_state), \
	.a.claimed = true, .f.seen = &running, .f.poll_ms = NOW - 1
#define TRAINS RUN(RUN_RUNNING, ATTEMPT_RUNNING)
#define BACKS_OFF RUN(RUN_BACKOFF, ATTEMPT_ENDED), .f.seen = NULL
#define PREQUEUED(attempt_state) \
	.f.state = RUN_SUBMITTING, .f.has_attempt = true, .a.state = (attempt_state), \
	.a.watching_since_ms = A_MINUTE_AGO, .f.poll_ms = NOW - 1, .a.exit_code = -1
#define NONE .f.has_attempt = false
#define INTENT PREQUEUED(ATTEMPT_INTENT)
#define HELD PREQUEUED(ATTEMPT_HELD), .a.job = { .job_id = 8 }

struct known {
	struct facts f;
	struct attempt a;
};

/* clang-format off */
static const struct {
	const char *when;
	struct known run;
	bool has_prequeued;
	struct known prequeued;
	enum decision_kind kind;
	enum cause cause;		/* END */
} cases[] = {
	/* none yet */
	{ "it trains", { TRAINS }, false, { NONE }, DECISION_NEW_ATTEMPT, 0 },
	{ "not seen in the last poll", { TRAINS, .f.seen = NULL }, false, { NONE }, DECISION_WAIT, 0 },
	{ "still queued", { RUN(RUN_QUEUED, ATTEMPT_QUEUED), .f.seen = &pending }, false, { NONE },
	  DECISION_WAIT, 0 },
	{ "its trainer has ended", { TRAINS, .f.exited = true }, false, { NONE }, DECISION_WAIT, 0 },
	{ "it goes back first", { TRAINS, .f.goes_back = true }, false, { NONE }, DECISION_WAIT, 0 },
	{ "to be held", { TRAINS, .f.wanted = ORDER_HOLD }, false, { NONE }, DECISION_WAIT, 0 },
	{ "to be killed", { TRAINS, .f.wanted = ORDER_KILL }, false, { NONE }, DECISION_WAIT, 0 },
	{ "in a pause", { BACKS_OFF }, false, { NONE }, DECISION_WAIT, 0 },
	{ "completed", { RUN(RUN_COMPLETED, ATTEMPT_ENDED) }, false, { NONE }, DECISION_WAIT, 0 },

	/* on the ladder */
	{ "a fresh one", { TRAINS }, true, { INTENT, .a.fresh = true }, DECISION_SUBMIT, 0 },
	{ "under way", { TRAINS }, true,
	  { INTENT, .a.fresh = true, .a.submit = { CALL_OPEN, NOW, 0 } }, DECISION_WAIT, 0 },
	{ "accepted", { TRAINS }, true,
	  { INTENT, .a.fresh = true, .a.submit = { CALL_OK, 0, NOW } }, DECISION_ADOPT, 0 },
	{ "an earlier lbd's", { TRAINS }, true, { INTENT, .f.seen = &held }, DECISION_ADOPT, 0 },
	{ "an earlier lbd's, nowhere", { TRAINS }, true, { INTENT }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "refused", { TRAINS }, true, { INTENT, .a.submit = { CALL_REFUSED, 0, NOW }, .a.call_text = "no" },
	  DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "the run backs off meanwhile", { BACKS_OFF }, true, { INTENT, .a.fresh = true },
	  DECISION_SUBMIT, 0 },

	/* in line */
	{ "in line", { TRAINS }, true, { HELD, .f.seen = &held }, DECISION_WAIT, 0 },
	{ "in line during a pause", { BACKS_OFF }, true, { HELD, .f.seen = &held }, DECISION_WAIT, 0 },
	{ "in line, not polled yet", { TRAINS }, true, { HELD, .f.poll_ms = 0 }, DECISION_WAIT, 0 },
	{ "lost", { TRAINS }, true, { HELD }, DECISION_END, CAUSE_LAUNCH_FAIL },
	{ "cancelled by somebody", { TRAINS }, true, { HELD, .f.seen = &cancelled }, DECISION_END,
	  CAUSE_LAUNCH_FAIL },
	{ "released by somebody", { TRAINS }, true, { HELD, .f.seen = &pending }, DECISION_CANCEL, 0 },
	{ "released and started", { TRAINS }, true, { HELD, .f.seen = &running }, DECISION_CANCEL, 0 },
	{ "being cancelled", { TRAINS }, true,
	  { HELD, .f.seen = &pending, .a.cancel = { CALL_OPEN, NOW, 0 } }, DECISION_WAIT, 0 },
	{ "cancelled, and still there", { TRAINS }, true,
	  { HELD, .f.seen = &pending, .a.cancel = { CALL_OK, 0, A_MINUTE_AGO } }, DECISION_CANCEL, 0 },

	/* not needed any more, on every step of the ladder */
	{ "killed before it is submitted", { TRAINS, .f.wanted = ORDER_KILL }, true,
	  { INTENT, .a.fresh = true }, DECISION_END, CAUSE_KILLED },
	{ "killed while it is submitted", { TRAINS, .f.wanted = ORDER_KILL_NOW }, true,
	  { INTENT, .a.submit = { CALL_OPEN, NOW, 0 } }, DECISION_END, CAUSE_KILLED },
	{ "killed", { TRAINS, .f.wanted = ORDER_KILL }, true, { HELD, .f.seen = &held }, DECISION_END,
	  CAUSE_KILLED },
	{ "held", { TRAINS, .f.wanted = ORDER_HOLD }, true, { HELD, .f.seen = &held }, DECISION_END,
	  CAUSE_KILLED },
	{ "completed", { RUN(RUN_COMPLETED, ATTEMPT_ENDED) }, true, { HELD, .f.seen = &held },
	  DECISION_END, CAUSE_KILLED },
	{ "failed", { RUN(RUN_FAILED, ATTEMPT_ENDED) }, true, { HELD, .f.seen = &held }, DECISION_END,
	  CAUSE_KILLED },
};
/* clang-format on */

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static struct decision decide(size_t i, const struct policy *p, int64_t not_before_ms)
{
	struct facts run = cases[i].run.f, prequeued = cases[i].prequeued.f;

	run.a = &cases[i].run.a;
	prequeued.a = &cases[i].prequeued.a;
	return prequeue(&run, cases[i].has_prequeued ? &prequeued : NULL, not_before_ms, p, NOW);
}

static void every_case(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct decision d = decide(i, &policy, 0);

		if (d.kind != cases[i].kind ||
		    (d.kind == DECISION_END && d.cause != cases[i].cause))
			fail_msg("%s: %s, cause %s", cases[i].when, decision_name(d.kind),
				 cause_name(d.cause));
	}
}

/* Nothing here may ever start a second trainer. */
static void it_is_never_released(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		enum decision_kind kind = decide(i, &policy, 0).kind;

		if (kind == DECISION_RELEASE || kind == DECISION_RELEASED || kind == DECISION_START)
			fail_msg("%s: %s", cases[i].when, decision_name(kind));
	}
}

static void without_the_key_there_is_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		assert_int_equal(decide(i, &without, 0).kind,
				 cases[i].has_prequeued ? DECISION_END : DECISION_WAIT);
}

static void where_it_is_worth_it(void **state)
{
	static const struct {
		int prequeue;
		bool has_one, ages_held;
		int64_t wait_ms;
		bool is_worth;
	} rows[] = {
		{ SPEC_PREQUEUE_NEVER, false, true, PREQUEUE_WORTH_MS, false },
		{ SPEC_PREQUEUE_NEVER, true, true, PREQUEUE_WORTH_MS, false },
		{ SPEC_PREQUEUE_ALWAYS, false, false, 0, true },
		{ SPEC_PREQUEUE_AUTO, false, true, PREQUEUE_WORTH_MS, true },
		{ SPEC_PREQUEUE_AUTO, false, true, PREQUEUE_WORTH_MS - 1, false },
		{ SPEC_PREQUEUE_AUTO, false, false, PREQUEUE_WORTH_MS, false },
		/* lbd has just begun: Slurm has not told yet what ages */
		{ SPEC_PREQUEUE_AUTO, true, false, PREQUEUE_WORTH_MS, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(prequeue_is_worth(rows[i].prequeue, rows[i].has_one,
						   rows[i].ages_held, rows[i].wait_ms),
				 rows[i].is_worth);
}

static void after_a_failure_it_takes_its_time(void **state)
{
	(void)state;
	assert_int_equal(decide(0, &policy, NOW + 1).kind, DECISION_WAIT);
	assert_int_equal(decide(0, &policy, NOW + 1).at_ms, NOW + 1);
	assert_int_equal(decide(0, &policy, NOW).kind, DECISION_NEW_ATTEMPT);
}

static void a_wait_is_never_in_the_past(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct decision d = decide(i, &policy, 0);

		if (d.kind == DECISION_WAIT && d.at_ms <= NOW)
			fail_msg("%s: a busy loop", cases[i].when);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case),
		cmocka_unit_test(it_is_never_released),
		cmocka_unit_test(without_the_key_there_is_none),
		cmocka_unit_test(where_it_is_worth_it),
		cmocka_unit_test(after_a_failure_it_takes_its_time),
		cmocka_unit_test(a_wait_is_never_in_the_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
