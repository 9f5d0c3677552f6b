/* SPDX-License-Identifier: MIT */
/* test_advice.c - how often to save, from spools whose answer one can tell by hand. */
#include "tests/unit/unit.h"

#include <math.h>

#include "ctl/report/advice.h"

enum { DAY_MS = 86400 * 1000 };

static void say(struct advice_facts *f, int64_t time_ms, bool from_trainer, json_t *line)
{
	struct spool_line l = { .time_ms = time_ms, .from_trainer = from_trainer, .line = line };

	advice_add(f, &l);
	json_decref(line);
}

static int64_t begin(struct advice_facts *f, int64_t now_ms)
{
	say(f, now_ms, false,
	    json_pack("{s:s, s:[s,s]}", "type", "attempt_start", "nodes", "a", "b"));
	say(f, now_ms, false, json_pack("{s:s}", "type", "launch_start"));
	return now_ms;
}

/* Steps of 1 s, a save of 5 s after each `every` of them. */
static int64_t train(struct advice_facts *f, int64_t now_ms, int steps, int every)
{
	for (int i = 1; i <= steps; i++) {
		now_ms += 1000;
		say(f, now_ms, true, json_pack("{s:s, s:i}", "type", "step", "step", i));
		if (i % every == 0) {
			now_ms += 5000;
			say(f, now_ms, false,
			    json_pack("{s:s, s:i, s:b}", "type", "checkpoint_valid", "step", i,
				      "valid", 1));
		}
	}
	return now_ms;
}

static void end(struct advice_facts *f, int64_t now_ms, const char *cause)
{
	say(f, now_ms, false, json_pack("{s:s, s:s}", "type", "launch_end", "cause", cause));
}

static void test_daly(void **state)
{
	(void)state;
	/* Young's, but for what is of a higher order */
	assert_true(fabs(save_interval_s(1, 1e6) / sqrt(2e6) - 1) < 0.01);
	assert_float_equal(save_interval_s(100, 10), 10, 1e-9);
}

static void test_cost_and_interval(void **state)
{
	struct advice_facts f = { .step = -1 };
	struct advice a;
	int64_t now_ms = train(&f, begin(&f, 1000), 1001, 100);

	(void)state;
	end(&f, now_ms, "completed");
	advice_work_out(&f, now_ms, NULL, &a);
	assert_int_equal(a.saves, 10);
	assert_float_equal(a.step_s, 1, 1e-9);
	assert_float_equal(a.save_s, 5, 1e-9);
	assert_float_equal(a.interval_s, 100, 1e-9);
	assert_int_equal(a.troubles, 0);
	/* two nodes, the published rate and nothing else: 0.04 nodes' days more */
	assert_float_equal(a.mtbf_s, (1 / TROUBLES_PER_NODE_DAY + a.node_days) / 2 * 86400, 1);
	assert_true(a.best_s > 1000 && a.lost_best < a.lost_now);
	advice_clear(&f);
}

static void test_troubles_fade(void **state)
{
	struct advice_facts f = { .step = -1 };
	struct advice soon, later;
	int64_t now_ms = 1000;

	(void)state;
	for (int i = 0; i < 20; i++) {
		now_ms = train(&f, begin(&f, now_ms), 100, 1000);
		end(&f, now_ms, i < 10 ? "node_fail" : "killed");
	}
	advice_work_out(&f, now_ms, NULL, &soon);
	assert_int_equal(soon.troubles, 10); /* a person's order is none */
	advice_work_out(&f, now_ms + 300 * (int64_t)DAY_MS, NULL, &later);
	assert_true(later.mtbf_s > 5 * soon.mtbf_s);
	assert_true(isnan(soon.save_s)); /* nothing was saved */
	advice_clear(&f);
}

/* Output that a pipe kept back tells of many steps at once, and saves that cost no time cannot be
 * saved at each step either. */
static void test_cost_not_told(void **state)
{
	static const int saves_ms[] = { 10000, 0 };
	struct advice a;

	(void)state;
	for (int heaps = 0; heaps <= 1; heaps++) {
		struct advice_facts f = { .step = -1 };
		int64_t now_ms = begin(&f, 1000);

		for (int i = 1; i <= 40; i++) {
			now_ms += heaps ? 0 : 1000;
			say(&f, now_ms, true, json_pack("{s:s, s:i}", "type", "step", "step", i));
			if (i % 10 != 0)
				continue;
			now_ms += saves_ms[!heaps];
			say(&f, now_ms, false,
			    json_pack("{s:s, s:i, s:b}", "type", "checkpoint_valid", "step", i,
				      "valid", 1));
		}
		advice_work_out(&f, now_ms, NULL, &a);
		assert_int_equal(a.saves, 4);
		assert_true(isnan(a.save_s) && isnan(a.best_s));
		assert_int_equal(isnan(a.step_s), heaps);
		advice_clear(&f);
	}
}

/* What all runs met counts for a young one. */
static void test_of_all_runs(void **state)
{
	struct advice_facts f = { .step = -1 };
	struct troubles none = { 0, 0 }, many = { 99, 1 };
	struct advice calm, rough;

	(void)state;
	end(&f, train(&f, begin(&f, 1000), 1001, 100), "completed");
	advice_work_out(&f, DAY_MS, &none, &calm);
	advice_work_out(&f, DAY_MS, &many, &rough);
	assert_float_equal(calm.mtbf_s / rough.mtbf_s, 100, 1);
	assert_true(rough.best_s < calm.best_s / 8);
	advice_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_daly),          cmocka_unit_test(test_cost_and_interval),
		cmocka_unit_test(test_troubles_fade), cmocka_unit_test(test_cost_not_told),
		cmocka_unit_test(test_of_all_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
