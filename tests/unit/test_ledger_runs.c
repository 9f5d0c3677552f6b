/* SPDX-License-Identifier: MIT */
/* test_ledger_runs.c - runs in the ledger: what goes in comes out, and what must not go in does
 * not. */
#include "tests/unit/ledger_home.h"

/* --- what goes in comes out ------------------------------------------------------------------- */
static void assert_same_run(const struct ledger_run *a, const struct ledger_run *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->owner, b->owner);
	assert_int_equal(a->owner_uid, b->owner_uid);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->cause, b->cause);
	assert_string_equal(a->text, b->text);
	assert_string_equal(a->scheduler, b->scheduler);
	assert_string_equal(a->dir, b->dir);
	assert_int_equal(a->wanted, b->wanted);
	assert_string_equal(a->wanted_by, b->wanted_by);
	assert_string_equal(a->wanted_reason, b->wanted_reason);
	assert_int_equal(a->wanted_ms, b->wanted_ms);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->ended_ms, b->ended_ms);
	assert_int_equal(a->backoff_until_ms, b->backoff_until_ms);
	assert_int_equal(a->failures, b->failures);
	assert_int_equal(a->step, b->step);
	assert_int_equal(a->target_step, b->target_step);
	assert_same_number(a->loss, b->loss);
	assert_same_number(a->tokens_per_s, b->tokens_per_s);
	assert_same_number(a->mfu, b->mfu);
}

static void a_run_survives_reopening(void **state)
{
	struct ledger_run want = a_run("brisk-otter-39"), got;
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	int64_t id;

	(void)state;
	ok(ledger_run_insert(l, &want, &id, &err), &err);
	commit(l);
	ledger_close(l);
	l = open_ledger();
	ok(ledger_run_find(l, "brisk-otter-39", &got, &err), &err);
	assert_int_equal(got.id, id);
	assert_same_run(&got, &want);
	assert_int_equal(ledger_run_find(l, "brisk-otter-4", &got, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.text, "brisk-otter-4: no such run");
	ledger_close(l);
	assert_sound();
}

static void missing_strings_are_empty(void **state)
{
	struct ledger_run run = { .name = "bare", .owner = "a", .scheduler = "local" }, got;
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	int64_t id;

	(void)state;
	ok(ledger_run_insert(l, &run, &id, &err), &err);
	ok(ledger_run_find(l, "bare", &got, &err), &err);
	assert_string_equal(got.wanted_by, "");
	assert_string_equal(got.dir, "");
	ledger_close(l);
}

static void a_taken_name_spoils_nothing(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run = a_run("twice"), got;
	struct err err = { 0 };
	int64_t id;

	(void)state;
	add_run(l, "before", RUN_CREATED);
	add_run(l, "twice", RUN_CREATED);
	assert_int_equal(ledger_run_insert(l, &run, &id, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_non_null(strstr(err.text, "twice: there is a run of this name already"));
	add_run(l, "after", RUN_CREATED);
	commit(l);
	err_clear(&err);
	ok(ledger_run_find(l, "before", &got, &err), &err);
	ok(ledger_run_find(l, "after", &got, &err), &err);
	ledger_close(l);
}

static void nonsense_is_refused_alone(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run = a_run("cloud"), got;
	struct err err = { 0 };
	int64_t id;

	(void)state;
	add_run(l, "good", RUN_CREATED);
	run.scheduler = "cloud";
	assert_int_equal(ledger_run_insert(l, &run, &id, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	assert_int_equal(put_metric(l, 77, 1, 1, &err), -1); /* no such run */
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	assert_int_equal(ledger_run_set_failures(l, 99, 1, 0, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	commit(l);
	err_clear(&err);
	ok(ledger_run_find(l, "good", &got, &err), &err);
	ledger_close(l);
}

static int see_run(const struct ledger_run *run, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->names);

	snprintf(seen->names + len, sizeof(seen->names) - len, "%s ", run->name);
	return ++seen->count == seen->stop_at;
}

static void runs_are_listed_newest_first(void **state)
{
	static const struct {
		bool live_only;
		int stop_at;
		const char *names;
		int rc;
	} cases[] = {
		{ false, 0, "e d c b a ", 0 },
		{ true, 0, "e c a ", 0 },
		{ false, 2, "e d ", -1 },
		{ true, 1, "e ", -1 },
	};
	struct ledger *l = open_ledger();
	struct err err = { 0 };
	size_t i;

	(void)state;
	add_run(l, "a", RUN_RUNNING);
	add_run(l, "b", RUN_KILLED);
	add_run(l, "c", RUN_HELD);
	add_run(l, "d", RUN_COMPLETED);
	add_run(l, "e", RUN_CREATED);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen seen = { .stop_at = cases[i].stop_at };

		assert_int_equal(ledger_run_each(l, cases[i].live_only, see_run, &seen, &err),
				 cases[i].rc);
		assert_string_equal(seen.names, cases[i].names);
		assert_int_equal(err.code, ERR_NONE);
	}
	ledger_close(l);
}

/* The daemon decides inside the loop, reads more and writes. */
static void runs_that_ended_long_ago_may_be_left_out(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run = a_run("old");
	struct seen seen = { 0 };
	struct err err = { 0 };
	int64_t id;

	(void)state;
	run.state = RUN_FAILED;
	run.ended_ms = 99;
	ok(ledger_run_insert(l, &run, &id, &err), &err);
	run.name = "late";
	run.ended_ms = 100;
	ok(ledger_run_insert(l, &run, &id, &err), &err);
	add_run(l, "live", RUN_RUNNING);
	ok(ledger_run_each_since(l, 100, see_run, &seen, &err), &err);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.names, "live late ");
	ledger_close(l);
}

static int fail_run(const struct ledger_run *run, void *arg)
{
	struct err err = { 0 };
	struct ledger_attempt attempt;
	struct ledger_run again;
	struct ledger *l = arg;

	if (run->state == RUN_QUEUED)
		ok(ledger_run_move(l, run->id, run->state, RUN_FAILED, CAUSE_CRASH, run->name, 3,
				   &err),
		   &err);
	ok(ledger_attempt_newest(l, run->id, &attempt, &err), &err);
	ok(ledger_attempt_started(l, attempt.id, run->name, 4, &err), &err);
	ok(ledger_run_find(l, run->name, &again, &err), &err);
	assert_string_equal(again.name, run->name);
	commit(l);
	return 0;
}

static void a_callback_may_read_write_and_commit(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	char name[16];
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "run-%d", i);
		add_attempt(l, add_run(l, name, i % 2 ? RUN_QUEUED : RUN_RUNNING), 1);
	}
	commit(l);
	ok(ledger_run_each(l, true, fail_run, l, &err), &err);
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "run-%d", i);
		ok(ledger_run_find(l, name, &run, &err), &err);
		assert_int_equal(run.state, i % 2 ? RUN_FAILED : RUN_RUNNING);
	}
	ledger_close(l);
	assert_int_equal(ask_int("SELECT count(*) FROM attempts WHERE state = 'running'"), 50);
}

static void found_strings_may_go_into_the_next_write(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	struct ledger_event event = { .kind = "queued" };

	(void)state;
	add_run(l, "lender", RUN_CREATED);
	commit(l);
	ok(ledger_run_find(l, "lender", &run, &err), &err);
	event.run_id = run.id;
	event.text = run.name;
	event.actor = run.owner;
	ok(ledger_event_put(l, &event, &err), &err);
	commit(l);
	ledger_close(l);
	assert_int_equal(
		ask_int("SELECT count(*) FROM events WHERE text = 'lender' AND actor = 'alice'"),
		1);
}

static void every_pair_of_states_moves_as_the_table_says(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	unsigned from, to;
	char name[32];

	(void)state;
	for (from = 0; from < RUN_STATE_COUNT; from++) {
		for (to = 0; to < RUN_STATE_COUNT; to++) {
			bool may = run_state_may_follow((enum run_state)from, (enum run_state)to);
			struct err err = { 0 };
			int64_t id;

			snprintf(name, sizeof(name), "r-%u-%u", from, to);
			id = add_run(l, name, (enum run_state)from);
			assert_int_equal(ledger_run_move(l, id, (enum run_state)from,
							 (enum run_state)to, CAUSE_OOM, "moved", 77,
							 &err),
					 may ? 0 : -1);
			assert_int_equal(err.code, may ? ERR_NONE : ERR_INTERNAL);
			err_clear(&err);
			ok(ledger_run_find(l, name, &run, &err), &err);
			assert_int_equal(run.state, may ? to : from);
			if (!may)
				continue;
			assert_int_equal(run.cause, CAUSE_OOM);
			assert_string_equal(run.text, "moved");
			assert_int_equal(run.ended_ms, run_state_is_final(run.state) ? 77 : 0);
		}
	}
	ledger_close(l);
}

static void a_lost_race_is_seen(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	int64_t id = add_run(l, "raced", RUN_STOPPING);

	(void)state;
	assert_int_equal(ledger_run_move(l, id, RUN_QUEUED, RUN_RUNNING, CAUSE_NONE, "", 1, &err),
			 -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	err_clear(&err);
	ok(ledger_run_find(l, "raced", &run, &err), &err);
	assert_int_equal(run.state, RUN_STOPPING);
	ledger_close(l);
}

static void orders_failures_and_progress(void **state)
{
	struct ledger *l = open_ledger();
	struct ledger_run run;
	struct err err = { 0 };
	int64_t id = add_run(l, "r", RUN_RUNNING);

	(void)state;
	ok(ledger_run_set_wanted(l, id, ORDER_KILL_NOW, "carol", "late", 21, &err), &err);
	ok(ledger_run_set_failures(l, id, 3, 22, &err), &err);
	ok(ledger_run_set_progress(l, id, 100, 200, 2.5, 1e5, 0.4, &err), &err);
	ok(ledger_run_set_progress(l, id, 101, -1, NAN, NAN, -1, &err), &err);
	ok(ledger_run_find(l, "r", &run, &err), &err);
	assert_int_equal(run.wanted, ORDER_KILL_NOW);
	assert_string_equal(run.wanted_by, "carol");
	assert_string_equal(run.wanted_reason, "late");
	assert_int_equal(run.wanted_ms, 21);
	assert_int_equal(run.failures, 3);
	assert_int_equal(run.backoff_until_ms, 22);
	assert_int_equal(run.step, 101);
	assert_int_equal(run.target_step, 200);
	assert_same_number(run.loss, 2.5);
	assert_same_number(run.tokens_per_s, 1e5);
	assert_same_number(run.mfu, 0.4);
	ok(ledger_run_set_progress(l, id, 102, 200, -0.5, INFINITY, 0, &err), &err);
	ok(ledger_run_find(l, "r", &run, &err), &err);
	assert_same_number(run.loss, -0.5);
	assert_same_number(run.tokens_per_s, INFINITY);
	ledger_close(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_run_survives_reopening),
		TEST(missing_strings_are_empty),
		TEST(a_taken_name_spoils_nothing),
		TEST(nonsense_is_refused_alone),
		TEST(runs_are_listed_newest_first),
		TEST(runs_that_ended_long_ago_may_be_left_out),
		TEST(a_callback_may_read_write_and_commit),
		TEST(found_strings_may_go_into_the_next_write),
		TEST(every_pair_of_states_moves_as_the_table_says),
		TEST(a_lost_race_is_seen),
		TEST(orders_failures_and_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
