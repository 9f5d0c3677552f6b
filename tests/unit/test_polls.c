/* SPDX-License-Identifier: MIT */
/* test_polls.c - how often a scheduler is asked, and how much is read in a turn: one question at a
 * time and one in an interval, fewer when it is slow, fewer and fewer when it does not answer. */
#include "tests/unit/engine_world.h"

static void test_pauses(void **state)
{
	static const struct {
		int64_t took_ms;
		enum scheduler_result result;
		int64_t pause_ms; /* after the answer */
	} cases[] = {
		{ 10, SCHEDULER_OK, 14990 },
		{ 2000, SCHEDULER_OK, 13000 },
		{ 10000, SCHEDULER_OK, 8000 },
		{ 10000, SCHEDULER_OK, 40000 }, /* slow: four times as long */
		{ 29000, SCHEDULER_OK, 40000 },
		{ 29000, SCHEDULER_OK, 60000 }, /* but no longer than a minute */
		{ 10, SCHEDULER_OK, 14990 },    /* well again */
		{ 29000, SCHEDULER_OK, 40 },    /* once: another controller took over meanwhile */
		{ 10, SCHEDULER_OK, 14990 },
		{ 10, SCHEDULER_DOWN, 1000 },
		{ 10, SCHEDULER_DOWN, 2000 },
		{ 10, SCHEDULER_UNCLEAR, 4000 },
		{ 10, SCHEDULER_DOWN, 8000 },
		{ 10, SCHEDULER_DOWN, 16000 },
		{ 10, SCHEDULER_DOWN, 32000 },
		{ 10, SCHEDULER_DOWN, 60000 },
		{ 10, SCHEDULER_DOWN, 60000 },
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

/* Slurm may forget a job (MinJobAge) before all is known of how it ended. One that is over stays
 * so; of one that ran, or waited, that says nothing. */
static void test_an_end_is_not_forgotten(void **state)
{
	static char none[] = "";
	static const enum job_phase phases[] = { JOB_PENDING, JOB_RUNNING, JOB_ENDING, JOB_ENDED };

	(void)state;
	for (size_t i = 0; i < COUNT(phases); i++) {
		struct ledger *ledger = open_ledger();
		struct engine *e = engine_create(ledger, &scheduler, NULL, &world, &times);
		struct job_status job = { .ref = { "t1", 7, 1 }, .phase = phases[i] };
		struct run run = run_on_two_nodes();
		struct facts f;

		run.attempt.nodes = NULL;
		run.excluded = run.resume_from = none;
		run.state = RUN_QUEUED;
		run.attempt.job = job.ref;
		e->runs = &run;
		snprintf(job.ledger_id, sizeof(job.ledger_id), "%s", ledger_id(ledger));
		pause_ms(e);
		answer_with(&job);
		engine_gather(e, &run, &run.attempt, &f);
		assert_non_null(f.seen);
		pause_ms(e);
		answer_after(0, SCHEDULER_OK);
		engine_gather(e, &run, &run.attempt, &f);
		if ((f.seen != NULL) != (phases[i] >= JOB_ENDING))
			fail_msg("phase %d", (int)phases[i]);
		e->runs = NULL;
		answer = NULL;
		engine_destroy(e);
		ledger_close(ledger);
		attempt_clear(&run.attempt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pauses),
		TEST(test_who_must_leave),
		TEST(test_no_word_of_outages),
		TEST(test_turns_are_short),
		TEST(test_a_long_line_is_more),
		TEST(test_slow_turns_take_less),
		TEST(test_an_end_is_not_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
