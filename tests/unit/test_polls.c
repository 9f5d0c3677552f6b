/* SPDX-License-Identifier: MIT */
/* test_polls.c - how often a scheduler is asked: one question at a time and one in an interval,
 * fewer when it is slow, fewer and fewer when it does not answer. The engine and its ledger are the
 * real ones. */
#include "tests/unit/ledger_home.h"

#include <signal.h>

#include "common/base/mem.h"
#include "common/run/hosts.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/state.h"

static int64_t now_ms = 1000 * 1000;
static int64_t polls;         /* asked so far */
static scheduler_done answer; /* NULL: nothing is asked */
static void *answer_arg;

static int64_t clock_now(void *self)
{
	(void)self;
	return now_ms;
}

/* What it is asked of nodes that go away it answers at once. */
static struct scheduler_reply outages_reply;
static int64_t outages_asked;

static void outages_now(struct scheduler *s, scheduler_done done, void *arg)
{
	(void)s;
	outages_asked++;
	done(arg, &outages_reply);
}

static void poll_asked(struct scheduler *s, scheduler_done done, void *arg)
{
	(void)s;
	assert_null(answer); /* never two at once */
	polls++;
	answer = done;
	answer_arg = arg;
}

static const struct scheduler_ops ops = {
	.name = "test",
	.poll = poll_asked,
	.outages = outages_now,
};

/* The answer comes after so long. */
static void answer_after(int64_t ms, enum scheduler_result result)
{
	struct scheduler_reply reply = { .result = result, .text = "" };
	scheduler_done done = answer;

	assert_non_null(done);
	now_ms += ms;
	answer = NULL;
	done(answer_arg, &reply);
}

static void answer_with(const struct job_status *job)
{
	struct scheduler_reply reply = { .text = "", .jobs = job, .job_count = 1 };
	scheduler_done done = answer;

	assert_non_null(done);
	answer = NULL;
	done(answer_arg, &reply);
}

/* From the answer to the next question, as the engine's turns make it. */
static int64_t pause_ms(struct engine *e)
{
	int64_t begun_ms = now_ms, at_ms;

	while ((at_ms = engine_poll_due(e)) != INT64_MAX) {
		assert_true(at_ms > now_ms);
		now_ms = at_ms;
	}
	return now_ms - begun_ms;
}

static struct scheduler scheduler = { .ops = &ops };

/* What the run's job asked for. */
static const char *reservations;
static int64_t limit_ms;

static void bounds_told(void *self, const struct run *run, char **names, int64_t *job_limit_ms)
{
	(void)self;
	(void)run;
	*names = reservations ? strdup(reservations) : NULL;
	*job_limit_ms = limit_ms;
}

/* What is taken for a person's cancellation. */
static int64_t cancelled_tasks[8];
static size_t cancelled_count;

static size_t note_cancelled(void *self, const struct run *run, int64_t *tasks, size_t count)
{
	(void)self;
	(void)run;
	for (size_t i = 0; i < count; i++)
		cancelled_tasks[cancelled_count++] = tasks[i];
	return 0;
}

static enum run_order switched_to;

static void switched_now(void *self, const struct run *run, struct switched *out)
{
	(void)self;
	(void)run;
	*out = (struct switched){ .order = switched_to };
}

/* Spools that never end, and hold no line. */
static int64_t spool_looks, spool_bytes, spool_least;
static int64_t spool_ms; /* what one takes */

static int64_t spool_full(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			  int (*on_line)(const struct spool_line *line, void *arg),
			  void (*on_bad)(int64_t offset, const struct err *why, void *arg),
			  void *arg, struct err *err)
{
	(void)self;
	(void)run;
	(void)on_line;
	(void)on_bad;
	(void)arg;
	(void)err;
	(void)offset;
	spool_looks++;
	spool_bytes += max_bytes;
	now_ms += spool_ms;
	spool_least = max_bytes < spool_least ? max_bytes : spool_least;
	return max_bytes;
}

static bool not_exited(void *self, const struct run *run, struct attempt_exit *out)
{
	(void)self;
	(void)run;
	(void)out;
	return false;
}

static int spec_gone(void *self, const char *run_dir, struct run_spec *out, struct err *err)
{
	(void)self;
	(void)out;
	return err_set(err, ERR_IO, "%s is away", run_dir);
}

static const struct world world = {
	.spec = spec_gone,
	.exited = not_exited,
	.spool = spool_full,
	.wall_ms = clock_now,
	.mono_ms = clock_now,
	.bounds = bounds_told,
	.switched = switched_now,
	.tasks_cancelled = note_cancelled,
};
static const struct poll_times times = { .busy_ms = 1000, .idle_ms = 15000, .spool_ms = 500 };

static void test_pauses(void **state)
{
	static const struct {
		int64_t took_ms;
		enum scheduler_result result;
		int64_t pause_ms; /* after the answer */
	} cases[] = {
		{ 10, SCHEDULER_OK, 14990 },     { 2000, SCHEDULER_OK, 13000 },
		{ 10000, SCHEDULER_OK, 40000 }, /* slow: four times as long */
		{ 29000, SCHEDULER_OK, 60000 }, /* but no longer than a minute */
		{ 10, SCHEDULER_OK, 14990 },    /* well again */
		{ 10, SCHEDULER_DOWN, 1000 },    { 10, SCHEDULER_DOWN, 2000 },
		{ 10, SCHEDULER_UNCLEAR, 4000 }, { 10, SCHEDULER_DOWN, 8000 },
		{ 10, SCHEDULER_DOWN, 16000 },   { 10, SCHEDULER_DOWN, 32000 },
		{ 10, SCHEDULER_DOWN, 60000 },   { 10, SCHEDULER_DOWN, 60000 },
		{ 10, SCHEDULER_OK, 14990 },
	};
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct engine_health health;

	(void)state;
	pause_ms(e);
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t pause;

		answer_after(cases[i].took_ms, cases[i].result);
		pause = pause_ms(e);
		if (pause < cases[i].pause_ms - 20 || pause > cases[i].pause_ms + 20)
			fail_msg("case %zu: paused %lld ms, not %lld", i, (long long)pause,
				 (long long)cases[i].pause_ms);
	}
	engine_health(e, &health);
	assert_true(health.calls_per_minute >= 0 && health.calls_per_minute <= 5);
	answer = NULL;
	engine_destroy(e);
	ledger_close(ledger);
}

/* A run on n1 and n2 that trains since START_S. */
enum { START_S = 900 };

static struct run run_on_two_nodes(void)
{
	static char two[] = "n[1-2]";
	struct run run = { .scheduler = &scheduler, .state = RUN_RUNNING, .has_attempt = true };

	run.attempt.state = ATTEMPT_RUNNING;
	run.attempt.last_seen.start_time = START_S;
	run.attempt.nodes = two;
	return run;
}

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

/* Asks once more, and hears that. */
static void ask_outages(struct engine *e, const char *json)
{
	int64_t asked = outages_asked;
	json_t *body = json ? json_loads(json, 0, NULL) : NULL;

	outages_reply = (struct scheduler_reply){ .text = "no word" };
	outages_reply.result = json ? SCHEDULER_OK : SCHEDULER_DOWN;
	outages_reply.body = body;
	now_ms += times.idle_ms;
	engine_poll_due(e);
	assert_int_equal(outages_asked, asked + 1);
	json_decref(body);
}

#define RESERVED(nodes, name, begins) \
	"{\"nodes\":\"" nodes "\",\"text\":\"" name "\",\"name\":\"" name "\",\"begins\":" begins \
	"}"
#define DRAINS(node) "{\"nodes\":\"" node "\",\"text\":\"drains\"}"

static void test_who_must_leave(void **state)
{
	static const struct {
		const char *rows, *reservations;
		int64_t limit_s, begins_s, draining;
		const char *text;
	} cases[] = {
		{ "", NULL, 0, 0, 0, "" },
		{ DRAINS("n1") "," DRAINS("n3"), NULL, 0, 0, 1, "drains" },
		{ RESERVED("n2", "a", "5000"), NULL, 0, 5000, 0, "a" },
		{ RESERVED("n3", "a", "5000"), NULL, 0, 0, 0, "" },
		{ RESERVED("n2", "a", "5000") "," DRAINS("n2"), NULL, 0, 5000, 1, "drains" },
		/* two of them: the earlier one counts, wherever it stands in the list */
		{ RESERVED("n2", "a", "5000") "," RESERVED("n2", "b", "9000"), NULL, 0, 5000, 0,
		  "a" },
		{ RESERVED("n1", "a", "9000") "," RESERVED("n[1-2]", "b", "5000"), NULL, 0, 5000, 0,
		  "b" },
		/* it may use that one, or those */
		{ RESERVED("n2", "a", "5000"), "a", 0, 0, 0, "" },
		{ RESERVED("n2", "a", "5000"), "aa,b,a", 0, 0, 0, "" },
		{ RESERVED("n2", "a", "5000"), "aa", 0, 5000, 0, "a" },
		{ RESERVED("n2", "a", "5000") "," RESERVED("n2", "b", "9000"), "a", 0, 9000, 0,
		  "b" },
		/* it began before the job */
		{ RESERVED("n2", "a", "900"), NULL, 0, 0, 0, "" },
		{ RESERVED("n2", "a", "901"), NULL, 0, 901, 0, "a" },
		/* it begins when the job's time is over */
		{ RESERVED("n2", "a", "5000"), NULL, 4100, 0, 0, "" },
		{ RESERVED("n2", "a", "5000"), NULL, 4101, 5000, 0, "a" },
		{ RESERVED("n2", "a", "5000"), NULL, 1, 5000, 0, "a" }, /* it has a longer one */
	};
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();

	(void)state;
	now_ms = 1000 * 1000;
	answer = NULL;
	e->runs = &run;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct leaving *l = &run.attempt.leaving;
		char json[400];

		now_ms = 1000 * 1000;
		e->slurm.outages_ms = 0;
		reservations = cases[i].reservations;
		limit_ms = 1000 * cases[i].limit_s;
		snprintf(json, sizeof(json), "{\"outages\":[%s]}", cases[i].rows);
		ask_outages(e, json);
		if (l->begins_ms != 1000 * cases[i].begins_s || l->draining != cases[i].draining ||
		    strcmp(l->text, cases[i].text) != 0)
			fail_msg("case %zu: begins %lld, %lld drain, \"%s\"", i,
				 (long long)l->begins_ms, (long long)l->draining, l->text);
	}
	e->runs = NULL;
	answer = NULL;
	engine_destroy(e);
	ledger_close(ledger);
}

/* While it answers polls: a scheduler that is down takes nothing back. */
static void test_no_word_of_outages(void **state)
{
	static const char json[] = "{\"outages\":[" DRAINS("n1") "]}";
	struct ledger *ledger = open_ledger();
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	struct run run = run_on_two_nodes();

	(void)state;
	e->runs = &run;
	for (int down = 0; down < 2; down++) {
		ask_outages(e, json);
		e->slurm.down_since_ms = down;
		ask_outages(e, NULL);
		ask_outages(e, NULL);
		assert_int_equal(run.attempt.leaving.draining, 1);
		run.dirty = false;
		ask_outages(e, NULL);
		assert_int_equal(run.attempt.leaving.draining, down ? 1 : 0);
		assert_int_equal(run.dirty, !down);
	}
	ask_outages(e, json);
	assert_int_equal(run.attempt.leaving.draining, 1);
	e->runs = NULL;
	answer = NULL;
	engine_destroy(e);
	ledger_close(ledger);
}

enum { MIB = 1024 * 1024 };

/* An engine of runs that have more to tell than a turn takes. */
static struct engine *talkative(struct ledger *ledger, struct run *runs, size_t count)
{
	struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
	static char none[] = "";

	answer = NULL;
	spool_looks = spool_bytes = spool_ms = 0;
	switched_to = ORDER_RUN;
	outages_reply = (struct scheduler_reply){ .text = "" };
	spool_least = INT64_MAX;
	for (size_t i = 0; i < count; i++) {
		runs[i] = run_on_two_nodes();
		runs[i].resume_from = runs[i].excluded = none;
		runs[i].attempt.claimed = true;
		runs[i].attempt.last_seen.phase = JOB_RUNNING;
		runs[i].next = e->runs;
		e->runs = &runs[i];
	}
	return e;
}

static void end_talkative(struct engine *e, struct ledger *ledger)
{
	e->runs = NULL;
	answer = NULL;
	engine_destroy(e);
	ledger_close(ledger);
}

/* After a night without lbd hundreds of runs have much to tell; who asks lbd for something waits
 * for one turn. */
static void test_turns_are_short(void **state)
{
	enum { RUNS = 200, LEAST = 1000 };
	struct ledger *ledger = open_ledger();
	static struct run runs[RUNS];
	struct engine *e = talkative(ledger, runs, RUNS);

	(void)state;
	engine_turn(e);
	assert_int_equal(spool_looks, RUNS);
	assert_true(spool_bytes <= 20 * MIB);
	assert_true(spool_least >= LEAST);
	for (size_t i = 0; i < RUNS; i++)
		assert_true(runs[i].attempt.has_more);
	end_talkative(e, ledger);
}

/* A short line, and the longest that there is: together they are more than the least of a turn. */
static int64_t spool_of_two(void *self, const struct run *run, int64_t *offset, int64_t max_bytes,
			    int (*on_line)(const struct spool_line *line, void *arg),
			    void (*on_bad)(int64_t offset, const struct err *why, void *arg),
			    void *arg, struct err *err)
{
	static const int64_t lines[] = { 1000, SPOOL_MAX_LINE_BYTES };
	int64_t bytes = 0;

	(void)self;
	(void)run;
	(void)offset;
	(void)on_line;
	(void)on_bad;
	(void)arg;
	(void)err;
	while (spool_looks < (int64_t)COUNT(lines) &&
	       (bytes == 0 || bytes + lines[spool_looks] <= max_bytes))
		bytes += lines[spool_looks++];
	return bytes;
}

static void test_a_long_line_is_more(void **state)
{
	struct world of_two = world;
	struct ledger *ledger = open_ledger();
	struct run run;
	struct engine *e = talkative(ledger, &run, 1);

	(void)state;
	of_two.spool = spool_of_two;
	e->world = &of_two;
	e->turn_bytes = 1;
	engine_ingest_begin(e);
	engine_ingest(e, &run);
	assert_int_equal(spool_looks, 1);
	assert_true(run.attempt.has_more);
	assert_false(run.attempt.drained);
	engine_ingest(e, &run);
	engine_ingest(e, &run);
	assert_int_equal(spool_looks, 2);
	assert_false(run.attempt.has_more);
	assert_true(run.attempt.drained);
	end_talkative(e, ledger);
}

/* Where reading takes long, a turn reads less. */
static int64_t turn_bytes(struct engine *e, int64_t takes_ms)
{
	spool_bytes = 0;
	spool_ms = takes_ms;
	engine_turn(e);
	return spool_bytes;
}

static void test_slow_turns_take_less(void **state)
{
	struct ledger *ledger = open_ledger();
	struct run run;
	struct engine *e = talkative(ledger, &run, 1);

	(void)state;
	assert_int_equal(turn_bytes(e, 4000), 4 * MIB);
	assert_int_equal(turn_bytes(e, 1000), MIB);
	assert_int_equal(turn_bytes(e, 1000), MIB);
	assert_int_equal(turn_bytes(e, 3600 * 1000), MIB);
	assert_true(turn_bytes(e, 10) > 1000); /* never none */
	assert_int_equal(turn_bytes(e, 0), 4 * MIB);
	end_talkative(e, ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pauses),
		TEST(test_who_must_leave),
		TEST(test_no_word_of_outages),
		TEST(test_blame_of_arrays),
		TEST(test_blame_of_what_did_not_boot),
		TEST(test_many_nodes),
		TEST(test_cancelled_tasks),
		TEST(test_an_order_asks_anew),
		TEST(test_a_restart_is_not_forgotten),
		TEST(test_no_pace_is_no_warning),
		TEST(test_a_late_answer_is_for_its_own_job),
		TEST(test_turns_are_short),
		TEST(test_a_long_line_is_more),
		TEST(test_slow_turns_take_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
