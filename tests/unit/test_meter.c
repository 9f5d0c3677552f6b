/* SPDX-License-Identifier: MIT */
/* test_meter.c - operations a token, against figures that others published. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "worker/lbworker/telemetry/meter.h"
#include "worker/lbworker/telemetry/plan.h"

static struct token_flop flop_of(enum model_family family, const char *flavor, size_t seq)
{
	const struct model_flavor *f = model_flavor_find(family, flavor, NULL);
	const struct model_options o = { .batch = 1, .seq = seq };
	struct model_cost cost;
	struct err err = { 0 };

	assert_non_null(f);
	assert_int_equal(model_cost(&cost, &f->shape, &o, &err), 0);
	return meter_flop(&f->shape, cost.parameters, cost.multiplied, seq);
}

static void is_near(double have, double want, double off, const char *what)
{
	if (!(fabs(have - want) <= off))
		fail_msg("%s: %g, not %g", what, have, want);
}

static void test_published(void **state)
{
	const struct plan_device *h100 = plan_device_find("H100", NULL);
	struct token_flop f;

	(void)state;
	/* llm.c's GPT-2 124M: 10 G tokens in 45 minutes on 8 H100: 463,000 tokens/s each, 40 %
	 * MFU */
	f = flop_of(MODEL_GPT2, "124M", 1024);
	is_near(f.palm, 6 * 123568128.0 + 12.0 * 12 * 768 * 1024, 2e6, "124M, PaLM");
	is_near(100 * f.palm * 463000 / h100->flops, 40, 0.5, "124M on H100");
	/* torchtitan's Llama 3 8B, 8192 tokens, compiled: 6667 tokens/s on an H100, 39 % MFU */
	f = flop_of(MODEL_LLAMA, "8B", 8192);
	is_near(100 * f.palm * 6667 / h100->flops, 39, 0.5, "8B on H100");
	is_near(f.palm - f.causal, 6.0 * 32 * 4096 * 8192, 1, "8B, half of attention");
	is_near(f.handbook, 6 * 8030261248.0, 1, "8B, handbook");
	is_near(f.handbook_again, 8 * 8030261248.0, 1, "8B, handbook, all again");
}

static void test_devices(void **state)
{
	(void)state;
	assert_null(plan_device_of("cpu: 2 threads, AVX-512"));
	assert_string_equal(plan_device_of("cuda: NVIDIA H200, 140 GiB")->name, "H200");
	assert_string_equal(plan_device_of("NVIDIA H100 80GB HBM3")->name, "H100");
	assert_null(plan_device_of("NVIDIA H100 PCIe")); /* is slower than the SXM of the table */
	assert_null(plan_device_of("NVIDIA GH200 480GB"));
}

static void test_shares(void **state)
{
	const struct meter m = { .peak_flops = 2e12 };
	const struct meter unknown = { .peak_flops = 0 };

	(void)state;
	assert_true(meter_mfu(&m, 1e9, 500) == 0.25);
	assert_true(isnan(meter_mfu(&unknown, 1e9, 500)));
}

static double now_flops;
static bool now_busy;
static int measured;

static double pretend(int threads, bool *busy)
{
	assert_int_equal(threads, 2);
	measured++;
	*busy = now_busy;
	return now_flops;
}

/* A peak from a busy moment is measured again until the machine is its own, and no step is faster
 * than the peak. */
static void test_busy_start(void **state)
{
	struct meter m = {
		.peak_flops = 100, .measure = pretend, .threads = 2, .times = 1, .tries = 3
	};

	(void)state;
	now_flops = 100, now_busy = true;
	assert_false(meter_hold_against(&m, 50));
	now_flops = 210, now_busy = false;
	assert_true(meter_hold_against(&m, 50));
	assert_true(m.peak_flops == 210);
	assert_int_equal(measured, 2);
	assert_false(meter_hold_against(&m, 150)); /* it is trusted now */
	assert_int_equal(measured, 2);
	now_flops = 205, now_busy = true; /* busy again: what was reached is a bound */
	assert_true(meter_hold_against(&m, 240));
	assert_true(m.peak_flops == 240);
	assert_true(meter_mfu(&m, 1, 240) <= 1);
	m.times = 4; /* ranks on other machines have as much each */
	now_flops = 100;
	assert_true(meter_hold_against(&m, 300));
	assert_true(m.peak_flops == 400);
	struct meter given = { .peak_flops = 100 };
	assert_false(meter_hold_against(&given, 208)); /* metrics.peak_tflops is what people say */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_busy_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
