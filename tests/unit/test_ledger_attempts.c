/* SPDX-License-Identifier: MIT */
/* test_ledger_attempts.c - attempts and launches in the ledger. */
#include "tests/unit/ledger_home.h"

/* --- attempts and launches -------------------------------------------------------------------- */
static int see_attempt(const struct ledger_attempt *attempt, void *arg)
{
	struct seen *seen = arg;

	seen->ids[seen->count++] = attempt->number;
	return 0;
}

/* Invisible until it is taken, then an attempt like any other; or gone without a trace. */
static void a_spare_is_taken_or_dropped(void **state)
{
	static const char first[] = "0123456789abcdef0123456789abcde0";
	static const char second[] = "0123456789abcdef0123456789abcde1";
	struct ledger *l = open_ledger();
	struct ledger_attempt a;
	struct err err = { 0 };
	int64_t run = add_run(l, "r", RUN_CREATED), id;
	struct seen seen = { 0 };

	(void)state;
	add_attempt(l, run, 1);
	assert_int_equal(ledger_prequeued_find(l, run, &a, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	ok(ledger_prequeued_insert(l, run, 2, first, "n3", 5, &id, &err), &err);
	ok(ledger_attempt_set_job(l, id, 4711, 1795000000, &err), &err);
	ok(ledger_attempt_each(l, run, see_attempt, &seen, &err), &err);
	assert_int_equal(seen.count, 1);
	ok(ledger_attempt_newest(l, run, &a, &err), &err);
	assert_int_equal(a.number, 1);
	ok(ledger_prequeued_drop(l, id, &err), &err);
	assert_int_equal(ledger_prequeued_drop(l, id, &err), -1);
	err_clear(&err);

	ok(ledger_prequeued_insert(l, run, 2, second, "n3", 6, &id, &err), &err);
	ok(ledger_attempt_set_job(l, id, 4712, 1795000001, &err), &err);
	commit(l);
	ledger_close(l);
	l = open_ledger();
	ok(ledger_prequeued_find(l, run, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_string_equal(a.token, second);
	assert_string_equal(a.excluded, "n3");
	assert_false(a.is_walled_in);
	assert_false(a.is_short);
	assert_false(a.was_waiting);
	assert_int_equal(a.state, ATTEMPT_HELD);
	assert_int_equal(a.job_id, 4712);
	ok(ledger_prequeued_take(l, id, 9, &err), &err);
	ok(ledger_attempt_walled_in(l, id, &err), &err);
	ok(ledger_attempt_short(l, id, &err), &err);
	ok(ledger_attempt_waited(l, id, &err), &err);
	ok(ledger_attempt_newest(l, run, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_true(a.is_walled_in);
	assert_true(a.is_short);
	assert_true(a.was_waiting);
	assert_int_equal(a.created_ms, 9);
	assert_int_equal(ledger_prequeued_find(l, run, &a, &err), -1);
	err_clear(&err);
	assert_int_equal(ledger_prequeued_drop(l, id, &err), -1);
	ledger_close(l);
}

static void an_attempt_from_intent_to_end(void **state)
{
	static const char token[] = "0123456789abcdef0123456789abcdef";
	struct ledger *l = open_ledger();
	struct ledger_attempt a;
	struct err err = { 0 };
	int64_t run = add_run(l, "r", RUN_CREATED), id;
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(ledger_attempt_newest(l, run, &a, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	add_attempt(l, run, 1);
	ok(ledger_attempt_insert(l, run, 2, token, 5, &id, &err), &err);
	ok(ledger_attempt_newest(l, run, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_int_equal(a.state, ATTEMPT_INTENT);
	assert_int_equal(a.exit_code, -1);
	assert_int_equal(a.resumed_from_step, -1);
	ok(ledger_attempt_set_job(l, id, 4711, 1795000000, &err), &err);
	ok(ledger_attempt_released(l, id, 6, &err), &err);
	ok(ledger_attempt_started(l, id, "n1,n2", 7, &err), &err);
	ok(ledger_attempt_started(l, id, "", 8, &err), &err);
	ok(ledger_attempt_set_spool(l, id, 4096, 17, &err), &err);
	ok(ledger_launch_start(l, id, 1, 42, 500, 7, &err), &err);
	ok(ledger_attempt_end(l, id, CAUSE_CRASH, -1, 11, "signal 11", 9, &err), &err);
	commit(l);
	ledger_close(l);

	l = open_ledger();
	ok(ledger_attempt_by_token(l, token, &a, &err), &err);
	assert_int_equal(a.id, id);
	assert_int_equal(a.run_id, run);
	assert_int_equal(a.number, 2);
	assert_string_equal(a.token, token);
	assert_int_equal(a.state, ATTEMPT_ENDED);
	assert_int_equal(a.job_id, 4711);
	assert_int_equal(a.submit_time, 1795000000);
	assert_int_equal(a.cause, CAUSE_CRASH);
	assert_int_equal(a.exit_code, -1);
	assert_int_equal(a.signal, 11);
	assert_string_equal(a.text, "signal 11");
	assert_string_equal(a.nodes, "n1,n2");
	assert_int_equal(a.created_ms, 5);
	assert_int_equal(a.released_ms, 6);
	assert_int_equal(a.started_ms, 7);
	assert_int_equal(a.ended_ms, 9);
	assert_int_equal(a.resumed_from_step, 500);
	assert_int_equal(a.spool_offset, 4096);
	assert_int_equal(a.spool_seq, 17);
	ok(ledger_attempt_each(l, run, see_attempt, &seen, &err), &err);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.ids[0], 1);
	assert_int_equal(seen.ids[1], 2);
	assert_int_equal(ledger_attempt_by_token(l, "none", &a, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	ledger_close(l);
}

enum verb { SET_JOB, RELEASE, START, END, VERB_COUNT };

static int attempt_verb(struct ledger *l, enum verb verb, int64_t id, struct err *err)
{
	switch (verb) {
	case SET_JOB:
		return ledger_attempt_set_job(l, id, 1, 2, err);
	case RELEASE:
		return ledger_attempt_released(l, id, 3, err);
	case START:
		return ledger_attempt_started(l, id, "n", 4, err);
	default:
		return ledger_attempt_end(l, id, CAUSE_LOST, -1, 0, "", 5, err);
	}
}

static void attempts_move_forward_only(void **state)
{
	static const bool may[ATTEMPT_STATE_COUNT][VERB_COUNT] = {
		[ATTEMPT_INTENT] = { [SET_JOB] = true, [START] = true, [END] = true },
		[ATTEMPT_HELD] = { [RELEASE] = true, [START] = true, [END] = true },
		[ATTEMPT_QUEUED] = { [START] = true, [END] = true },
		[ATTEMPT_RUNNING] = { [START] = true, [END] = true },
	};
	struct ledger *l = open_ledger();
	int64_t run = add_run(l, "r", RUN_RUNNING), number = 0;
	unsigned from, verb;

	(void)state;
	for (from = 0; from < ATTEMPT_STATE_COUNT; from++) {
		for (verb = 0; verb < VERB_COUNT; verb++) {
			int64_t id = add_attempt(l, run, ++number);
			struct err err = { 0 };
			unsigned v;

			for (v = 0; v < from; v++)
				ok(attempt_verb(l, (enum verb)v, id, &err), &err);
			assert_int_equal(attempt_verb(l, (enum verb)verb, id, &err),
					 may[from][verb] ? 0 : -1);
			assert_int_equal(err.code, may[from][verb] ? ERR_NONE : ERR_INTERNAL);
		}
	}
	ledger_close(l);
}

static int see_launch(const struct ledger_launch *launch, void *arg)
{
	struct ledger_launch *out = arg;

	out[launch->number - 1] = *launch;
	out[launch->number - 1].text = NULL;
	if (launch->number == 1)
		assert_string_equal(launch->text, "exit status 3");
	return 0;
}

static void launches_of_an_attempt(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_launch got[4] = { { 0 } };
	struct err err = { 0 };
	int64_t id = add_attempt(l, add_run(l, "r", RUN_RUNNING), 1);

	(void)state;
	ok(ledger_launch_start(l, id, 1, 100, -1, 10, &err), &err);
	ok(ledger_launch_start(l, id, 1, 999, 5, 11, &err), &err); /* told again: the first stays */
	ok(ledger_launch_steps(l, id, 1, &(struct ledger_steps){ 1, 9, 100, 900 }, &err), &err);
	ok(ledger_launch_steps(l, id, 1, &(struct ledger_steps){ 10, 20, 1000, 2000 }, &err),
	   &err); /* the next batch */
	ok(ledger_launch_end(l, id, 1, CAUSE_ERROR, 3, 0, "exit status 3", 12, &err), &err);
	ok(ledger_launch_start(l, id, 2, 101, 20, 13, &err), &err);
	ok(ledger_launch_start(l, id, 3, 102, 20, 14, &err), &err);
	ok(ledger_launch_end_open(l, id, CAUSE_LOST, 15, &err), &err);
	ok(ledger_launch_each(l, id, see_launch, got, &err), &err);
	assert_int_equal(got[0].attempt_id, id);
	assert_int_equal(got[0].cause, CAUSE_ERROR);
	assert_int_equal(got[0].exit_code, 3);
	assert_int_equal(got[0].signal, 0);
	assert_int_equal(got[0].pid, 100);
	assert_int_equal(got[0].started_ms, 10);
	assert_int_equal(got[0].ended_ms, 12);
	assert_int_equal(got[0].resumed_from_step, -1);
	assert_int_equal(got[0].first_step, 1);
	assert_int_equal(got[0].last_step, 20);
	assert_int_equal(got[1].cause, CAUSE_LOST);
	assert_int_equal(got[1].ended_ms, 15);
	assert_int_equal(got[1].resumed_from_step, 20);
	assert_int_equal(got[1].first_step, -1);
	assert_int_equal(got[2].cause, CAUSE_LOST);
	/* the line that told of its begin was lost */
	ok(ledger_launch_steps(l, id, 4, &(struct ledger_steps){ 1, 9, 100, 900 }, &err), &err);
	ok(ledger_launch_end(l, id, 4, CAUSE_ERROR, 1, 0, "", 1, &err), &err);
	ok(ledger_launch_each(l, id, see_launch, got, &err), &err);
	assert_int_equal(got[3].number, 0);
	ledger_close(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(an_attempt_from_intent_to_end),
		TEST(a_spare_is_taken_or_dropped),
		TEST(attempts_move_forward_only),
		TEST(launches_of_an_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
