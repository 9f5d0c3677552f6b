/* SPDX-License-Identifier: MIT */
/* test_pipeline.c - 1F1B: each half once and in order, no more under way than promised, and nobody
 * waits for ever; layers shared out as torchtitan does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "worker/lbworker/config/stages.h"
#include "worker/lbworker/ranks/pipeline.h"

enum { STAGES = 8, PASSES = 12, MOVES = 4 * PASSES + 2 };

static void test_order(void **state)
{
	(void)state;
	for (int stages = 1; stages <= STAGES; stages++)
		for (int stage = 0; stage < stages; stage++)
			for (int64_t passes = 1; passes <= PASSES; passes++) {
				int64_t done[2] = { 0, 0 };
				for (int64_t i = 0; i < 2 * passes; i++) {
					struct pipeline_half h = pipeline_half(stage, stages,
									       passes, i);
					assert_int_equal(h.pass, done[h.is_backward]);
					done[h.is_backward]++;
					assert_true(done[1] <= done[0]);
					assert_true(done[0] - done[1] <= stages - stage);
				}
				assert_int_equal(done[0], passes);
				assert_int_equal(done[1], passes);
			}
}

/* --- a line of stages that hold nothing: what is given is taken at the same time, or not at all
 * --- */

struct turn {
	int to, from;
};
struct line {
	struct turn turn[STAGES][MOVES];
	int turns[STAGES], at[STAGES];
	bool gave[STAGES], took[STAGES]; /* in the present turn */
};

static void add(struct line *l, int stage, int to, int from)
{
	if (to >= 0 || from >= 0)
		l->turn[stage][l->turns[stage]++] = (struct turn){ to, from };
}

static void plan(struct line *l, int stage, int stages, int64_t passes)
{
	struct pipeline_half now, before;

	for (int64_t i = 0; i <= 2 * passes; i++, before = now) {
		now = pipeline_half(stage, stages, passes, i);
		struct pipeline_move m = pipeline_move(stage, stages, i > 0 ? &before : NULL,
						       i < 2 * passes ? &now : NULL);
		if (m.one_by_one) {
			add(l, stage, m.to, -1);
			m.to = -1;
		}
		add(l, stage, m.to, m.from);
	}
}

/* One step of anybody: a piece that one gives and the other takes now, or a turn that is over. */
static bool move(struct line *l, int stages)
{
	for (int s = 0; s < stages; s++) {
		if (l->at[s] == l->turns[s])
			continue;
		struct turn t = l->turn[s][l->at[s]];
		int to = t.to;
		if (to >= 0 && !l->gave[s] && l->at[to] < l->turns[to] && !l->took[to] &&
		    l->turn[to][l->at[to]].from == s) {
			l->gave[s] = l->took[to] = true;
			return true;
		}
		if ((t.to < 0 || l->gave[s]) && (t.from < 0 || l->took[s])) {
			l->gave[s] = l->took[s] = false;
			l->at[s]++;
			return true;
		}
	}
	return false;
}

static void test_nobody_waits_for_ever(void **state)
{
	static struct line l;

	(void)state;
	for (int stages = 1; stages <= STAGES; stages++)
		for (int64_t passes = 1; passes <= PASSES; passes++) {
			memset(&l, 0, sizeof(l));
			for (int s = 0; s < stages; s++)
				plan(&l, s, stages, passes);
			while (move(&l, stages))
				;
			for (int s = 0; s < stages; s++)
				assert_int_equal(l.at[s], l.turns[s]);
		}
}

/* --- layers ----------------------------------------------------------------------------------- */

static struct config with(size_t layers, int64_t stages, int64_t first_less, int64_t last_less)
{
	static char schedule[] = "1F1B";

	return (struct config){ .shape.layers = layers,
				.pipeline_degree = stages,
				.pipeline_microbatch = 1,
				.layers_per_stage = -1,
				.first_stage_less = first_less,
				.last_stage_less = last_less,
				.pipeline_schedule = schedule,
				.local_batch_size = 6 };
}

static void test_layers(void **state)
{
	static const struct {
		size_t layers;
		int64_t stages, first_less, last_less;
		uint16_t end[4];
	} cases[] = {
		/* torchtitan's generate_llm_fqn_per_model_part: 34 are shared out, 9 9 8 8 */
		{ 32, 4, 1, 1, { 8, 17, 25, 32 } }, { 32, 2, 1, 1, { 16, 32 } },
		{ 32, 4, 0, 0, { 8, 16, 24, 32 } }, { 6, 4, 1, 1, { 1, 3, 5, 6 } },
		{ 30, 3, 2, 1, { 9, 20, 30 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c = with(cases[i].layers, cases[i].stages, cases[i].first_less,
				       cases[i].last_less);
		struct model_pipeline p = stages_of(&c);
		for (int64_t s = 0; s < cases[i].stages; s++)
			assert_int_equal(p.end[s], cases[i].end[s]);
	}
}

static void test_refused(void **state)
{
	struct err err = { 0 };
	const char *key;
	struct config c = with(4, 4, 1, 1);

	(void)state;
	assert_int_equal(stages_check(&c, &key, &err), -1);
	assert_string_equal(key, "parallelism.pipeline_parallel_degree");
	assert_non_null(strstr(err.text, "1, 2, 3 would do"));
	c = with(6, 2, 1, 1);
	assert_int_equal(stages_check(&c, &key, NULL), 0);
	c.layers_per_stage = 2;
	err = (struct err){ 0 };
	assert_int_equal(stages_check(&c, &key, &err), -1);
	assert_non_null(strstr(err.text, "do not make 2 stages: 4, 5, 6, 7 would"));
	c.layers_per_stage = 4;
	c.pipeline_microbatch = 4;
	err = (struct err){ 0 };
	assert_int_equal(stages_check(&c, &key, &err), -1);
	assert_string_equal(key, "parallelism.pipeline_parallel_microbatch_size");
	assert_non_null(strstr(err.text, "local_batch_size 6: 1, 2, 3, 6"));
	c.pipeline_microbatch = 3;
	c.shape.tied = true;
	assert_int_equal(stages_check(&c, &key, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_nobody_waits_for_ever),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
