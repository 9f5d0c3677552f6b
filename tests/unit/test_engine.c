/* SPDX-License-Identifier: MIT */
/* test_engine.c - what becomes of single runs: whose fault an end is, what a person is known to
 * have asked for, and whose answer it is that comes late. */
#include "tests/unit/engine_world.h"

#include <signal.h>

#include "common/base/mem.h"
#include "common/run/hosts.h"

struct scored {
	const char *name;
	double score;
};

static int see_score(const struct ledger_node *node, void *arg)
{
	struct scored *scored = arg;

	if (strcmp(node->name, scored->name) == 0)
		scored->score = node->score;
	return 0;
}

static double score_of(struct ledger *ledger, const char *name)
{
	struct scored scored = { .name = name };

	assert_int_equal(ledger_node_each(ledger, see_score, &scored, NULL), 0);
	return scored.score;
}

/* A task of an array ends on a node of its own, which need not be the first task's. */
static void test_blame_of_arrays(void **state)
{
	struct decision crash = { .cause = CAUSE_CRASH, .signal = SIGSEGV, .blame_run = true };
	struct decision fire = { .cause = CAUSE_NODE_FAIL };
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();
	char *failed;

	(void)state;
	run.tasks_changed_ns = 1;
	run.attempt.claimed = true;
	engine_blame_nodes(e, &run, &crash, "");
	assert_int_equal(run.suspects.count, 0);
	run.attempt.seen_poll_ms = 1;
	run.attempt.last_seen.nodes = "n3";
	run.attempt.last_seen.failed_nodes = "n3,n4";
	failed = engine_failed_nodes(&run);
	assert_string_equal(failed, "n3");
	engine_blame_nodes(e, &run, &fire, failed);
	assert_true(score_of(ledger, "n1") == 0);
	assert_true(score_of(ledger, "n3") > 0);
	free(failed);
	engine_destroy(e);
	ledger_close(ledger);
}

static void test_a_node_that_has_left(void **state)
{
	struct decision fire = { .cause = CAUSE_NODE_FAIL };
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();
	json_t *names = json_pack("[s, s]", "n1", "unheard");

	(void)state;
	engine_blame_nodes(e, &run, &fire, "n1");
	engine_blame_nodes(e, &run, &fire, "n2");
	engine_forget_nodes(e, &run, names);
	assert_true(score_of(ledger, "n1") == 0);
	assert_true(score_of(ledger, "n2") > 0);
	json_decref(names);
	engine_destroy(e);
	ledger_close(ledger);
}

/* Eight jobs of one GPU each end by one failure of their node; what begins there later tells of
 * another. */
static void test_one_failure_of_many_jobs(void **state)
{
	struct decision end = { .cause = CAUSE_NODE_FAIL };
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();

	(void)state;
	e->nodes.half_life_ms = 24 * 3600 * 1000;
	run.attempt.started_ms = now_ms;
	now_ms += 1000;
	engine_blame_nodes(e, &run, &end, ""); /* one of two nodes, nobody knows which */
	for (int i = 0; i < 8; i++, now_ms++)
		engine_blame_nodes(e, &run, &end, "n1");
	assert_true(score_of(ledger, "n1") > 1 && score_of(ledger, "n1") < 1.51);
	assert_true(score_of(ledger, "n2") == 0.5);
	run.attempt.started_ms = now_ms;
	now_ms += 1000;
	engine_blame_nodes(e, &run, &end, "n1");
	assert_true(score_of(ledger, "n1") > 2);
	run.attempt.started_ms = 0; /* nobody saw when it began */
	engine_blame_nodes(e, &run, &end, "n1");
	assert_true(score_of(ledger, "n1") > 3);
	engine_destroy(e);
	ledger_close(ledger);
}

/* Nodes that boot, of which n2 fails to: while the job completes Slurm names n1 alone. */
static void test_blame_of_what_did_not_boot(void **state)
{
	static const struct {
		bool was_seen; /* as its nodes booted */
		enum job_phase phase;
		double n1, n2;
	} cases[] = {
		{ true, JOB_ENDING, 0, 1 },
		{ false, JOB_ENDING, 0, 0 },
		{ false, JOB_ENDED, 0, 1 }, /* by then it names all */
	};
	struct decision end = { .kind = DECISION_END, .cause = CAUSE_NODE_FAIL, .text = "" };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct job_status job = { .ref = { "t1", 7, 1 }, .phase = JOB_PENDING };
		struct ledger *ledger = open_ledger();
		struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
		struct run run = run_on_two_nodes();
		char none[] = "";

		run.id = add_run(ledger, "r", RUN_QUEUED);
		run.attempt.id = add_attempt(ledger, run.id, 1);
		run.state = RUN_QUEUED;
		run.excluded = none;
		run.attempt.state = ATTEMPT_QUEUED;
		run.attempt.nodes = NULL;
		run.attempt.job = job.ref;
		e->runs = &run;
		snprintf(job.ledger_id, sizeof(job.ledger_id), "%s", ledger_id(ledger));
		job.nodes = "n[1-2]";
		pause_ms(e);
		if (cases[i].was_seen)
			answer_with(&job);
		job.phase = cases[i].phase;
		job.nodes = job.phase == JOB_ENDED ? "n[1-2]" : "n1";
		job.failed_nodes = "n2,n9";
		pause_ms(e);
		answer_with(&job);
		engine_write(e, &run, &end);
		if (score_of(ledger, "n1") != cases[i].n1 || score_of(ledger, "n2") != cases[i].n2)
			fail_msg("case %zu: n1 %f, n2 %f", i, score_of(ledger, "n1"),
				 score_of(ledger, "n2"));
		e->runs = NULL;
		answer = NULL;
		engine_destroy(e);
		ledger_close(ledger);
		attempt_clear(&run.attempt);
	}
}

/* n[1,3,5,…]: what Slurm prints of a large job whose nodes are not in a row. */
static char *odd_nodes(int count)
{
	struct buf out;

	buf_init(&out, HOSTS_TEXT_BYTES);
	for (int i = 0; i < count; i++)
		buf_addf(&out, "%s%d", i ? "," : "n[", 2 * i + 1);
	buf_addf(&out, "]");
	return buf_take(&out);
}

/* All its nodes count, and no name that nobody has: a job that is to keep away from such a one
 * would be refused. */
static void test_many_nodes(void **state)
{
	enum { MANY = 1000 };
	struct decision end = { .kind = DECISION_END, .cause = CAUSE_NODE_FAIL, .text = "" };
	struct job_status job = { .ref = { "t1", 7, 1 }, .phase = JOB_PENDING };
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();
	char excluded[] = "n3,n1999", *names = odd_nodes(MANY);

	(void)state;
	run.id = add_run(ledger, "r", RUN_QUEUED);
	run.attempt.id = add_attempt(ledger, run.id, 1);
	run.state = RUN_QUEUED;
	run.excluded = excluded;
	run.spec.nodes = MANY + 1;
	run.attempt.state = ATTEMPT_QUEUED;
	run.attempt.nodes = NULL;
	run.attempt.job = job.ref;
	e->runs = &run;
	snprintf(job.ledger_id, sizeof(job.ledger_id), "%s", ledger_id(ledger));
	job.nodes = names;
	for (int i = 0; i < 2; i++) {
		pause_ms(e);
		answer_with(&job);
	}
	assert_int_equal(engine_missing_nodes(&run), 1);
	engine_write(e, &run, &end);
	assert_true(score_of(ledger, "n1999") > 0);
	e->runs = NULL;
	answer = NULL;
	engine_destroy(e);
	commit(ledger);
	ledger_close(ledger);
	assert_int_equal(ask_int("SELECT count(*) FROM events WHERE kind = 'node_again'"), 2);
	assert_int_equal(ask_int("SELECT count(*) FROM nodes WHERE name LIKE '%[%'"), 0);
	attempt_clear(&run.attempt);
	free(names);
}

static size_t told_cancelled(struct engine *e, struct run *run)
{
	/* as it waited; after an hour, a minute; without nodes, and by a controller that may have
	 * forgotten them */
	json_t *tasks = json_loads("[[9], [2, true, 1000, 4600, 0], [3, true, 1000, 1060, 0], "
				   "[4, false, 0, 1000, 500], [5, false, 0, 1000, 990]]",
				   0, NULL);

	cancelled_count = 0;
	run->attempt.job.submit_time = START_S;
	engine_note_cancelled(e, run, tasks);
	json_decref(tasks);
	return cancelled_count;
}

/* Only what a person is known to have cancelled is not run again. */
static void test_cancelled_tasks(void **state)
{
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();

	(void)state;
	assert_int_equal(told_cancelled(e, &run), 3);
	assert_int_equal(cancelled_tasks[0], 2);
	assert_int_equal(cancelled_tasks[1], 4);
	assert_int_equal(cancelled_tasks[2], 9);
	run.wanted = ORDER_HOLD;
	assert_int_equal(told_cancelled(e, &run), 0);
	run.wanted = ORDER_RUN;
	switched_to = ORDER_HOLD; /* of which lbd has not heard yet */
	assert_int_equal(told_cancelled(e, &run), 0);
	switched_to = ORDER_RUN;
	run.attempt.cancel.state = CALL_OK;
	assert_int_equal(told_cancelled(e, &run), 0);
	engine_destroy(e);
	ledger_close(ledger);
}

/* As the ledger has it for an lbd that begins anew. */
static void test_an_order_asks_anew(void **state)
{
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();

	(void)state;
	snprintf(run.name, sizeof(run.name), "r");
	run.asked_ms = 1;
	e->runs = &run;
	engine_order(e, "r", ORDER_RUN, "somebody", "");
	assert_int_equal(run.asked_ms, engine_wall(e));
	e->runs = NULL;
	free(run.let_go_by);
	free(run.wanted_by);
	free(run.wanted_reason);
	engine_destroy(e);
	ledger_close(ledger);
}

/* Its row says that it is to run: who cannot read its spec now reads it later. */
static void test_a_restart_is_not_forgotten(void **state)
{
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct err err = { 0 };

	(void)state;
	add_run(ledger, "r", RUN_CREATED);
	for (int i = 0; i < 2; i++) {
		ok(engine_adopt_anew(e, "r", &err), &err);
		assert_non_null(engine_live(e, "r"));
		assert_int_equal(e->run_count, 1);
	}
	engine_destroy(e);
	ledger_close(ledger);
}

/* A job that is over its limit, and nothing tells how long its training still takes. */
static void test_no_pace_is_no_warning(void **state)
{
	static const struct {
		int64_t first_step, last_step, target_step,
			ended_s; /* ended_s: ago, by its limit */
		bool is_told;
	} cases[] = {
		{ 1, 20, 100, 1, true },
		{ 1, 2, 100, 1, false }, /* too few steps for a pace */
		{ 1, 20, -1, 1, false }, /* no target */
		{ 1, 20, 20, 1, false }, /* and one that is reached */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ledger *ledger = open_ledger();
		struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
		struct run run = run_on_two_nodes();
		struct attempt *a = &run.attempt;

		run.id = add_run(ledger, "r", RUN_RUNNING);
		run.target_step = cases[i].target_step;
		a->last_seen.limit_time = START_S + 60;
		a->pace = (struct pace){
			.launch = 1,
			.first_step = cases[i].first_step,
			.first_ms = 1000 * START_S,
			.last_step = cases[i].last_step,
			.last_ms = 1000 * (START_S + 60 + cases[i].ended_s),
		};
		engine_warn_of_limit(e, &run);
		if (a->is_limit_reported != cases[i].is_told)
			fail_msg("case %zu", i);
		engine_destroy(e);
		ledger_close(ledger);
	}
}

static struct {
	scheduler_done done;
	void *arg;
} submitted;

static int submit_later(void *self, const struct run *run, const char *ledger_id,
			scheduler_done done, void *arg, struct err *err)
{
	(void)self;
	(void)run;
	(void)ledger_id;
	(void)err;
	submitted.done = done;
	submitted.arg = arg;
	return 0;
}

static void token_drawn(void *self, char out[TOKEN_HEX + 1])
{
	(void)self;
	token_draw(out);
}

/* One that waits in line is dropped while it is submitted: the next one has its row's id. */
static void test_a_late_answer_is_for_its_own_job(void **state)
{
	struct world w = world;
	struct decision make = { .kind = DECISION_NEW_ATTEMPT },
			submit = { .kind = DECISION_SUBMIT };
	struct scheduler_reply late = { .text = "", .job = { .job_id = 7 } };
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &w, &times);
	struct run run = run_on_two_nodes();
	int64_t id;

	(void)state;
	w.submit = submit_later;
	w.token = token_drawn;
	run.id = add_run(ledger, "r", RUN_RUNNING);
	run.attempt.id = add_attempt(ledger, run.id, 1);
	run.attempt.number = 1;
	e->runs = &run;
	engine_write_prequeued(e, &run, &make);
	id = run.prequeued->id;
	engine_act(e, &run, run.prequeued, &submit);
	engine_drop_prequeued(e, &run);
	engine_write_prequeued(e, &run, &make);
	assert_int_equal(run.prequeued->id, id);
	submitted.done(submitted.arg, &late);
	assert_int_equal(run.prequeued->submit.state, CALL_NONE);
	assert_int_equal(run.prequeued->submitted.job_id, 0);
	engine_act(e, &run, run.prequeued, &submit);
	submitted.done(submitted.arg, &late);
	assert_int_equal(run.prequeued->submitted.job_id, 7);
	e->runs = NULL;
	free(run.prequeued);
	free(run.prequeued_excluded);
	engine_destroy(e);
	ledger_close(ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_blame_of_arrays),
		TEST(test_a_node_that_has_left),
		TEST(test_one_failure_of_many_jobs),
		TEST(test_blame_of_what_did_not_boot),
		TEST(test_many_nodes),
		TEST(test_cancelled_tasks),
		TEST(test_an_order_asks_anew),
		TEST(test_a_restart_is_not_forgotten),
		TEST(test_no_pace_is_no_warning),
		TEST(test_a_late_answer_is_for_its_own_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
