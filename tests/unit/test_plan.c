/* SPDX-License-Identifier: MIT */
/* test_plan.c - known models have the parameters they were published with; the sums of a plan. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "worker/lbworker/telemetry/plan_choose.h"

/* Parameter counts of the published checkpoints; GPT-2's with 47 more rows of 50304. */
static void test_counts(void **state)
{
	static const struct {
		enum model_family family;
		const char *flavor;
		uint64_t parameters;
	} cases[] = {
		{ MODEL_LLAMA, "1B", 1235814400 },
		{ MODEL_LLAMA, "3B", 3212749824 },
		{ MODEL_LLAMA, "8B", 8030261248 },
		{ MODEL_LLAMA, "70B", 70553706496 },
		{ MODEL_LLAMA, "405B", 405853388800 },
		{ MODEL_LLAMA, "2-7B", 6738415616 },
		{ MODEL_LLAMA, "2-13B", 13015864320 },
		{ MODEL_LLAMA, "2-70B", 68976648192 },
		{ MODEL_NEOX, "70M", 70426624 },
		{ MODEL_NEOX, "160M", 162322944 },
		{ MODEL_NEOX, "410M", 405334016 },
		{ MODEL_NEOX, "1B", 1011781632 },
		{ MODEL_NEOX, "1.4B", 1414647808 },
		{ MODEL_NEOX, "2.8B", 2775208960 },
		{ MODEL_NEOX, "6.9B", 6857302016 },
		{ MODEL_GPT2, "124M", 124439808 + 47 * 768 },
		{ MODEL_GPT2, "355M", 354823168 + 47 * 1024 },
		{ MODEL_GPT2, "774M", 774030080 + 47 * 1280 },
		{ MODEL_GPT2, "1558M", 1557611200 + 47 * 1600 },
		{ MODEL_MISTRAL, "7B", 7241732096 },
		{ MODEL_MISTRAL, "7B-v0.3", 7248023552 },
		{ MODEL_MISTRAL, "12B", 12247782400 },
		{ MODEL_QWEN3, "0.6B", 596049920 },
		{ MODEL_QWEN3, "1.7B", 1720574976 },
		{ MODEL_QWEN3, "4B", 4022468096 },
		{ MODEL_QWEN3, "8B", 8190735360 },
		{ MODEL_QWEN3, "14B", 14768307200 },
		{ MODEL_QWEN3, "32B", 32762123264 },
		{ MODEL_OLMO2, "1B", 1484916736 },
		{ MODEL_OLMO2, "7B", 7298617344 },
		{ MODEL_OLMO2, "13B", 13716198400 },
		{ MODEL_OLMO2, "32B", 32234279936 },
		{ MODEL_GEMMA2, "2B", 2614341888 },
		{ MODEL_GEMMA2, "9B", 9241705984 },
		{ MODEL_GEMMA2, "27B", 27227128320 },
		{ MODEL_GEMMA3, "270M", 268098176 },
		{ MODEL_GEMMA3, "1B", 999885952 },
		{ MODEL_QWEN3_MOE, "30B-A3B", 30532122624 },
		{ MODEL_QWEN3_MOE, "235B-A22B", 235093634560 },
		{ MODEL_DOTS1, "142B", 142774381696 },
	};
	const struct model_options o = { .batch = 1, .seq = 128 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct model_flavor *f = model_flavor_find(cases[i].family, cases[i].flavor,
								 NULL);
		struct model_cost cost;
		struct err err = { 0 };
		assert_non_null(f);
		assert_int_equal(model_cost(&cost, &f->shape, &o, &err), 0);
		if (cost.parameters != cases[i].parameters)
			fail_msg("%s: %llu, not %llu", cases[i].flavor,
				 (unsigned long long)cost.parameters,
				 (unsigned long long)cases[i].parameters);
	}
}

/* Of experts a token meets some: what it does not meet takes memory and no arithmetic. */
static void test_experts(void **state)
{
	struct config c = { .local_batch_size = 1, .seq_len = 128, .accumulate = 1, .steps = 1 };
	const uint64_t idle = (uint64_t)48 * 120 * 3 * 2048 * 768, vocab = (uint64_t)151936 * 2048;
	const uint64_t norms = 48 * (2 * 2048 + 2 * 128) + 2048;
	struct err err = { 0 };
	struct plan p;

	(void)state;
	c.shape = model_flavor_find(MODEL_QWEN3_MOE, "30B-A3B", NULL)->shape;
	assert_int_equal(plan_make(&p, &c, &err), 0);
	assert_int_equal(p.whole.active, 30532122624 - idle);
	assert_int_equal(p.whole.multiplied, 30532122624 - idle - vocab - norms);
	assert_true(p.flop_palm == 6.0 * (double)p.whole.multiplied + 12.0 * 48 * 4096 * 128);
	assert_true(p.flop_handbook == 6.0 * (double)p.whole.active);
	assert_int_equal(p.weights, 4 * p.whole.parameters);
}

/* Every name in the list of names is a flavour, and a shape that the model takes. */
static void test_names(void **state)
{
	const struct model_options o = { .batch = 1, .seq = 64 };

	(void)state;
	for (int family = 0; family < MODEL_FAMILY_COUNT; family++) {
		const char *names, *at;
		assert_null(model_flavor_find((enum model_family)family, "none", &names));
		for (at = names; *at; at += strspn(at, ", ")) {
			char name[32];
			struct model_cost cost;
			struct err err = { 0 };
			size_t len = strcspn(at, ",");
			snprintf(name, sizeof(name), "%.*s", (int)len, at);
			const struct model_flavor *f = model_flavor_find((enum model_family)family,
									 name, NULL);
			if (!f || model_cost(&cost, &f->shape, &o, &err))
				fail_msg("%s: %s", name, err.text);
			at += len;
		}
	}
}

static void test_sums(void **state)
{
	struct config c = { .local_batch_size = 4,
			    .seq_len = 64,
			    .accumulate = 2,
			    .steps = 10,
			    .checkpoint_enable = true };
	struct err err = { 0 };
	struct plan p, full;

	(void)state;
	c.shape = model_flavor_find(MODEL_LLAMA, "124M", NULL)->shape;
	assert_int_equal(plan_make(&p, &c, &err), 0);
	assert_int_equal(p.cost.multiplied, 123568128); /* all but the norms; the head is tied */
	assert_true(p.flop_palm == 6.0 * 123568128 + 12.0 * 12 * 768 * 64);
	assert_true(p.flop_causal == 6.0 * 123568128 + 6.0 * 12 * 768 * 64);
	assert_int_equal(p.tokens, 512);
	assert_int_equal(plan_bytes(&p), 16 * p.cost.parameters + p.activations);
	assert_int_equal(plan_fits(&p, 0, plan_bytes(&p), &err), 0);
	assert_int_equal(plan_fits(&p, 0, plan_bytes(&p) - 1, &err), -1);
	assert_non_null(strstr(err.text, "GiB needed"));
	assert_null(strstr(err.text, "checkpoint copy"));
	/* where the copy for checkpoints shares that memory: weights and both moments again */
	uint64_t with_copy = plan_bytes(&p) + 12 * p.cost.parameters;
	assert_int_equal(plan_fits(&p, p.checkpoint, with_copy, &err), 0);
	err = (struct err){ 0 };
	assert_int_equal(plan_fits(&p, p.checkpoint, with_copy - 1, &err), -1);
	assert_non_null(strstr(err.text, "checkpoint copy 1.38), "));
	c.recompute = RECOMPUTE_FULL;
	assert_int_equal(plan_make(&full, &c, &err), 0);
	assert_true(full.activations < p.activations);
	double layers = full.flop_causal - 6.0 * 50304 * 768;
	/* the last product of a layer gives what the next one keeps */
	assert_true(fabs(full.flop_again - (layers / 3 - 12 * 2.0 * 768 * 2048)) < 1);

	const struct plan_device *h200 = plan_device_find("H200", NULL);
	double most = h200->flops / p.flop_causal;
	assert_true(plan_ceiling(&p, h200) < most);
	assert_true(plan_ceiling(&full, h200) < plan_ceiling(&p, h200));
	assert_null(plan_device_find("H201", NULL));
}

/* On an H200: what is kept gets less with the memory, cheap parts go first, and what is chosen
 * fits. */
static void test_choice(void **state)
{
	char recipe[] = "none";
	struct config c = { .local_batch_size = 2,
			    .seq_len = 8192,
			    .accumulate = 1,
			    .compute = COMPUTE_BF16,
			    .moments = COMPUTE_BF16,
			    .recompute = RECOMPUTE_AUTO,
			    .recipe = recipe };
	const uint64_t gib = (uint64_t)1 << 30, most = 400 * gib;
	double before = 0;
	struct plan p;

	(void)state;
	c.shape = model_flavor_find(MODEL_LLAMA, "8B", NULL)->shape;
	for (uint64_t bytes = most; bytes > 0; bytes -= gib) {
		plan_choose(&c, bytes, true);
		assert_int_equal(plan_make(&p, &c, NULL), 0);
		assert_true(p.flop_again >= before);
		before = p.flop_again;
		if (plan_bytes(&p) + 3 * gib > bytes) {
			assert_int_equal(c.again | c.more, AGAIN_ALL);
			break;
		}
		if (bytes == most)
			assert_int_equal(c.again | c.more, 0);
		if (c.again | c.more)
			assert_true((c.again | c.more) & AGAIN_NORMED);
	}
	assert_true(plan_bytes(&p) < 130 * gib);
	/* one that fits on an H200, with products kept in most layers */
	plan_choose(&c, (uint64_t)plan_device_find("H200", NULL)->bytes, true);
	assert_int_equal(plan_make(&p, &c, NULL), 0);
	assert_true(p.flop_again < 0.1 * p.flop_causal);
	assert_int_equal(plan_fits(&p, 0, (uint64_t)plan_device_find("H200", NULL)->bytes, NULL),
			 0);
	/* what a person asks for stays */
	c.recompute = RECOMPUTE_FULL;
	plan_choose(&c, most, true);
	assert_int_equal(config_model_options(&c).again, AGAIN_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts), cmocka_unit_test(test_experts),
		cmocka_unit_test(test_names),  cmocka_unit_test(test_sums),
		cmocka_unit_test(test_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
