/* SPDX-License-Identifier: MIT */
/* test_relaunch.c - what follows an attempt that ended: whether it counts, how long the pause is,
 * and what the rules of a run turn round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/config/run_spec.h"
#include "daemon/engine/decide/relaunch.h"
#include "tests/unit/usual_policy.h"

static void pauses_grow_to_the_longest(void **state)
{
	static const int64_t want_s[] = { 0, 60, 120, 240, 480, 960, 1800, 1800 };
	struct policy endless = policy;

	(void)state;
	endless.max_without_progress = 1000;
	for (int64_t n = 0; n < (int64_t)(sizeof(want_s) / sizeof(want_s[0])); n++) {
		struct relaunch_facts f = { .cause = CAUSE_CRASH, .exit_code = -1, .failures = n };

		assert_int_equal(relaunch_decide(&f, &endless).backoff_ms, want_s[n] * 1000);
	}
}

/* What is not the run's fault is not counted, but comes back slower and slower where it is over at
 * once. */
static void attempts_in_vain_pause(void **state)
{
	static const int64_t want_s[] = { 0, 0, 60, 120, 240, 480 };
	static const struct {
		enum cause cause;
		int64_t lasted_ms, watched_ms;
		bool in_vain;
	} rows[] = {
		{ CAUSE_PREEMPTED, 500, 500, true },
		{ CAUSE_TIMEOUT, 500, 0, true },
		{ CAUSE_NODE_FAIL, 500, 500, true },
		{ CAUSE_PREEMPTED, 19999, 19999, true },
		{ CAUSE_PREEMPTED, 500, 20000, false },
		{ CAUSE_PREEMPTED, 20000, 0, false },
		{ CAUSE_TIMEOUT, 3600000, 0, false },
		{ CAUSE_CRASH, 500, 500, false },
		{ CAUSE_ERROR, 500, 500, false },
		{ CAUSE_COMPLETED, 500, 500, false },
		{ CAUSE_KILLED, 500, 500, false },
		/* the clock was set back, and an lbd before this one saw it start */
		{ CAUSE_TIMEOUT, -3600000, 0, false },
	};

	(void)state;
	for (int64_t n = 0; n < (int64_t)(sizeof(want_s) / sizeof(want_s[0])); n++) {
		struct relaunch_facts f = { .cause = CAUSE_PREEMPTED,
					    .exit_code = -1,
					    .in_vain = n };

		assert_int_equal(relaunch_decide(&f, &policy).backoff_ms, want_s[n] * 1000);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(relaunch_was_in_vain(rows[i].cause, rows[i].lasted_ms,
						      rows[i].watched_ms),
				 rows[i].in_vain);
}

/* [restart.policy] turns the usual verdicts round, and only those it may. */
static void rules_are_heeded(void **state)
{
	static const struct {
		enum cause cause;
		enum spec_rule rule;
		bool blame_run;
		enum run_state to;
		int64_t backoff_ms;
		bool counts;
	} rows[] = {
		/* the budget of 3 is spent where it counts */
		{ CAUSE_CRASH, SPEC_RULE_AUTO, true, RUN_FAILED, 0, true },
		{ CAUSE_DIVERGED, SPEC_RULE_AUTO, true, RUN_FAILED, 0, false },
		{ CAUSE_CRASH, SPEC_COUNT, true, RUN_FAILED, 0, true },
		{ CAUSE_CRASH, SPEC_RELAUNCH, true, RUN_BACKOFF, 60000, false },
		{ CAUSE_CRASH, SPEC_STOP, true, RUN_FAILED, 0, false },
		{ CAUSE_TIMEOUT, SPEC_RELAUNCH, false, RUN_BACKOFF, 0, false },
		{ CAUSE_TIMEOUT, SPEC_COUNT, false, RUN_FAILED, 0, true },
		{ CAUSE_PREEMPTED, SPEC_STOP, false, RUN_FAILED, 0, false },
		{ CAUSE_DIVERGED, SPEC_COUNT, true, RUN_FAILED, 0, true },
		{ CAUSE_DIVERGED, SPEC_RELAUNCH, true, RUN_BACKOFF, 60000, false },
		{ CAUSE_LAUNCH_FAIL, SPEC_RELAUNCH, true, RUN_FAILED, 0, true },
		{ CAUSE_LAUNCH_FAIL, SPEC_RELAUNCH, false, RUN_BACKOFF, 0, false },
		{ CAUSE_COMPLETED, SPEC_STOP, true, RUN_COMPLETED, 0, false },
		{ CAUSE_KILLED, SPEC_RELAUNCH, true, RUN_KILLED, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct relaunch_facts f = { .cause = rows[i].cause,
					    .exit_code = -1,
					    .failures = rows[i].counts ? 3 : 2,
					    .blame_run = rows[i].blame_run,
					    .ever_trained = true };
		struct policy p = policy;
		int rules[CAUSE_COUNT] = { 0 };
		struct relaunch r;

		rules[rows[i].cause] = (int)rows[i].rule;
		p.rules = rules;
		r = relaunch_decide(&f, &p);
		if (r.to != rows[i].to || r.backoff_ms != rows[i].backoff_ms ||
		    relaunch_counts(&p, f.cause, f.blame_run) != rows[i].counts)
			fail_msg("row %zu: %s, %lld ms", i, run_state_name(r.to),
				 (long long)r.backoff_ms);
	}
}

static void pauses_are_spread_by_the_token(void **state)
{
	static const char *const tokens[] = { "00000000", "80000000aa", "ffffffff", NULL, "" };
	static const int64_t want_ms[] = { 60000, 54000, 48001, 60000, 60000 };

	(void)state;
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		struct relaunch_facts f = {
			.cause = CAUSE_CRASH, .exit_code = -1, .failures = 1, .token = tokens[i]
		};

		assert_int_equal(relaunch_decide(&f, &policy).backoff_ms, want_ms[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_grow_to_the_longest),
		cmocka_unit_test(attempts_in_vain_pause),
		cmocka_unit_test(rules_are_heeded),
		cmocka_unit_test(pauses_are_spread_by_the_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
