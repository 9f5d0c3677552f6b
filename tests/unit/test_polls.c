/* SPDX-License-Identifier: MIT */
/* test_polls.c - how often a scheduler is asked: one question at a time and one in an interval,
 * fewer when it is slow, fewer and fewer when it does not answer. The engine and its ledger are the
 * real ones. */
#include "tests/unit/ledger_home.h"

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

static void poll_asked(struct scheduler *s, scheduler_done done, void *arg)
{
	(void)s;
	assert_null(answer); /* never two at once */
	polls++;
	answer = done;
	answer_arg = arg;
}

static const struct scheduler_ops ops = { .name = "test", .poll = poll_asked };

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
static const struct world world = { .wall_ms = clock_now, .mono_ms = clock_now };
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

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_pauses) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
