/* SPDX-License-Identifier: MIT */
/* test_reconcile_vain.c - jobs that would wait in vain: no node is left to them or takes them, what
 * they depend on has failed, all of their nodes are not free for long. */
#include <string.h>

#include "tests/unit/reconcile_facts.h"

/* Nodes are given another chance only where the scheduler may have no other, not for a job that got
 * lost. */
static void what_walls_a_run_in(void **state)
{
	static const struct {
		const char *when;
		struct known known;
		bool has_no_eligible_node;
	} ends[] = {
		{ "refused",
		  { SUBMITTING, .f.excludes = true, .a.submit = { CALL_REFUSED } },
		  true },
		{ "refused, nothing excluded",
		  { SUBMITTING, .a.submit = { CALL_REFUSED } },
		  false },
		{ "refused by lbd itself",
		  { SUBMITTING, .f.excludes = true, .a.is_unfit = true,
		    .a.submit = { CALL_REFUSED } },
		  false },
		{ "no node is left",
		  { QUEUED, .f.seen = &job_without_node, .f.excludes = true },
		  true },
		{ "it never arrived",
		  { SUBMITTING, .f.excludes = true,
		    .a.submit = { CALL_UNCLEAR, .reply_ms = A_MINUTE_AGO } },
		  false },
		{ "lost while held",
		  { HELD, .f.excludes = true, .a.release = { CALL_GONE } },
		  false },
		{ "lost while it waited", { QUEUED, .f.excludes = true }, false },
		{ "cancelled",
		  { QUEUED, .f.seen = &cancelled_job, .f.excludes = true,
		    .a.ended_ms = A_MINUTE_AGO },
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct decision d = decide(&ends[i].known);

		if (d.kind != DECISION_END ||
		    d.has_no_eligible_node != ends[i].has_no_eligible_node)
			fail_msg("%s: %s, no eligible node: %d", ends[i].when,
				 decision_name(d.kind), d.has_no_eligible_node);
	}
}

/* A run that has trained asks for fewer nodes once all of them were not free for long. */
static void when_it_does_with_fewer_nodes(void **state)
{
	static const struct job_status waits = { .ref = { .job_id = 7 },
						 .phase = JOB_PENDING,
						 .reason = "Resources" };
	static const struct job_status depends = { .ref = { .job_id = 7 },
						   .phase = JOB_PENDING,
						   .reason = "Dependency" };
	static const struct {
		const char *when;
		struct known known;
		bool never; /* restart.min_nodes is not set */
		int64_t after_ms;
		enum decision_kind kind;
	} rows[] = {
		{ "it has waited",
		  { QUEUED, .f.seen = &waits, .f.ever_trained = true },
		  false,
		  59999,
		  DECISION_END },
		{ "not yet",
		  { QUEUED, .f.seen = &waits, .f.ever_trained = true },
		  false,
		  60001,
		  DECISION_WAIT },
		{ "not asked to",
		  { QUEUED, .f.seen = &waits, .f.ever_trained = true },
		  true,
		  0,
		  DECISION_WAIT },
		{ "it has never trained", { QUEUED, .f.seen = &waits }, false, 0, DECISION_WAIT },
		{ "the nodes that it gave up to grow are not free yet",
		  { QUEUED, .f.seen = &waits, .f.ever_trained = true, .a.was_moved = true },
		  false,
		  0,
		  DECISION_WAIT },
		{ "it asks for fewer already",
		  { QUEUED, .f.seen = &waits, .f.ever_trained = true, .f.asks_fewer = true },
		  false,
		  0,
		  DECISION_WAIT },
		{ "it waits for something else",
		  { QUEUED, .f.seen = &depends, .f.ever_trained = true },
		  false,
		  0,
		  DECISION_WAIT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct known known = rows[i].known;
		struct policy with = policy;

		with.may_do_with_fewer = !rows[i].never;
		with.fewer_after_ms = rows[i].after_ms;
		known.f.a = &known.a;
		struct decision d = reconcile(&known.f, &with, NOW);
		if (d.kind != rows[i].kind || d.is_short != (d.kind == DECISION_END))
			fail_msg("%s: %s, is_short %d", rows[i].when, decision_name(d.kind),
				 d.is_short);
	}
}

/* What it depends on may have failed while nobody looked, and Slurm has forgotten the job since: it
 * must not be made anew. */
#define WAITED \
	.f.depends = true, .a.last_seen.reason = "Dependency", .a.seen_poll_ms = 1, \
	.a.was_waiting = true
static void what_may_be_doomed(void **state)
{
	/* clang-format off */
	static const struct {
		const char *when;
		struct known known;
		enum decision_kind kind;
		int detail;
		bool is_final;
	} gone[] = {
		{ "gone, it depended, and nobody saw it since lbd came back", { QUEUED, .f.depends = true },
		  DECISION_END, CAUSE_LAUNCH_FAIL, true },
		{ "gone, and it was last seen to wait for others", { QUEUED, WAITED }, DECISION_END, CAUSE_LAUNCH_FAIL, true },
		{ "the same, of a run that has begun before: those had ended well",
		  { QUEUED, .f.depends = true, .f.ever_trained = true }, DECISION_END, CAUSE_LAUNCH_FAIL, false },
		{ "gone, held by an lbd that may have released it", { HELD, .f.depends = true }, DECISION_END, CAUSE_LAUNCH_FAIL,
		  true },
		{ "gone, but it was seen to wait for its turn",
		  { QUEUED, .f.depends = true, .a.last_seen.reason = "Resources", .a.seen_poll_ms = 1, .a.was_waiting = true }, DECISION_END,
		  CAUSE_LAUNCH_FAIL, false },
		{ "gone at once after its submission: the controller died",
		  { QUEUED, .f.depends = true, .a.fresh = true, .a.last_seen.reason = "Dependency", .a.seen_poll_ms = 1 }, DECISION_END, CAUSE_LAUNCH_FAIL, false },
		{ "gone, and it depended on nothing", { QUEUED }, DECISION_END, CAUSE_LAUNCH_FAIL, false },
		{ "gone, and accounting can be asked", { QUEUED, WAITED, .f.may_recall = true }, DECISION_RECALL, 0, false },
		{ "gone, and accounting knows that a person did it",
		  { QUEUED, WAITED, .f.may_recall = true, .a.recall = { CALL_OK, NOW, NOW },
		    .a.recalled = { .cause = CAUSE_KILLED, .has_canceller = true, .canceller = 1234 } }, DECISION_END,
		  CAUSE_KILLED, false },
		{ "gone, and accounting knows that Slurm did it",
		  { QUEUED, WAITED, .f.may_recall = true, .a.recall = { CALL_OK, NOW, NOW },
		    .a.recalled = { .cause = CAUSE_KILLED, .has_canceller = true } }, DECISION_END, CAUSE_LAUNCH_FAIL, true },
		{ "gone, and accounting has never heard of it",
		  { QUEUED, WAITED, .f.may_recall = true, .a.recall = { CALL_GONE, NOW, NOW } }, DECISION_END,
		  CAUSE_LAUNCH_FAIL, true },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		struct decision d = decide(&gone[i].known);

		if (d.kind != gone[i].kind || detail_of(&d) != gone[i].detail ||
		    d.is_final != gone[i].is_final)
			fail_msg("%s: %s %d, final: %d", gone[i].when, decision_name(d.kind),
				 detail_of(&d), d.is_final);
	}
}

/* "FAILED" alone helps nobody: of a script that never began it is said where to look. */
static void what_no_node_could_begin(void **state)
{
	static const struct job_status failed = { .phase = JOB_ENDED,
						  .cause = CAUSE_LAUNCH_FAIL,
						  .state = "FAILED",
						  .reason = "JobLaunchFailure",
						  .exit_code = -1 };
	const struct known known = { QUEUED, .f.seen = &failed, .a.ended_ms = A_MINUTE_AGO };
	struct decision d = decide(&known);

	(void)state;
	assert_int_equal(d.kind, DECISION_END);
	assert_int_equal(d.cause, CAUSE_LAUNCH_FAIL);
	assert_non_null(strstr(d.text, "--output"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_walls_a_run_in),
		cmocka_unit_test(when_it_does_with_fewer_nodes),
		cmocka_unit_test(what_may_be_doomed),
		cmocka_unit_test(what_no_node_could_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
