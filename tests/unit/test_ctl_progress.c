/* SPDX-License-Identifier: MIT */
/* test_ctl_progress.c - rates, remaining time, and the live line at every width. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/progress.h"

static void test_rate(void **state)
{
	struct pace pace = { 0 };

	(void)state;
	assert_true(isnan(pace_rate(&pace)));
	pace_add(&pace, 10, 100);
	assert_true(isnan(pace_rate(&pace)));
	pace_add(&pace, 20, 105);
	assert_float_equal(pace_rate(&pace), 2, 1e-9);
	assert_int_equal(pace_eta_ms(&pace, 20, 120), 50000);
	assert_int_equal(pace_eta_ms(&pace, 120, 120), 0);
	assert_int_equal(pace_eta_ms(&pace, 130, 120), 0);
	assert_int_equal(pace_eta_ms(&pace, 20, -1), -1);
	assert_int_equal(pace_eta_ms(&pace, -1, 120), -1);
	assert_int_equal(pace_eta_ms(&pace, 20, INT64_MAX), -1);
}

/* Only the newest samples count: a slow start must not spoil the estimate for ever. */
static void test_rate_is_recent(void **state)
{
	struct pace pace = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++)
		pace_add(&pace, i, i * 100.0);
	for (int i = 0; i < 2 * PACE_SAMPLES; i++)
		pace_add(&pace, 10 + i, 1000 + i * 0.5);
	assert_float_equal(pace_rate(&pace), 2, 1e-9);
}

static void test_rate_begins_anew(void **state)
{
	struct pace pace = { 0 };

	(void)state;
	pace_add(&pace, 100, 10);
	pace_add(&pace, 200, 20);
	pace_add(&pace, 101, 60); /* back to a checkpoint */
	assert_true(isnan(pace_rate(&pace)));
	pace_add(&pace, 102, 61);
	assert_float_equal(pace_rate(&pace), 1, 1e-9);
	pace_add(&pace, 102, 70); /* back by one step */
	assert_int_equal(pace.count, 1);
	pace_add(&pace, 103, 5); /* another host's clock */
	assert_true(isnan(pace_rate(&pace)));
	pace_add(&pace, 104, NAN);
	assert_int_equal(pace.count, 1);
}

static void test_same_time(void **state)
{
	struct pace pace = { 0 };

	(void)state;
	pace_add(&pace, 1, 10);
	pace_add(&pace, 2, 10);
	assert_true(isnan(pace_rate(&pace)));
}

static const struct progress running = {
	.run = "brisk-otter-39",
	.state = "running",
	.step = 120,
	.target = 200,
	.loss = 2.3101,
	.tokens_per_s = 5400,
	.eta_ms = 80000,
};

static void assert_line(const struct progress *p, int width, bool utf8, const char *want)
{
	char *line = progress_line(p, width, utf8);

	assert_string_equal(line, want);
	free(line);
}

static void test_lines(void **state)
{
	struct progress p = running;

	(void)state;
	assert_line(&p, 0, false,
		    "brisk-otter-39  step 120/200  loss 2.3101  5.4k tok/s  ETA 1m20s");
	assert_line(&p, 80, false,
		    "brisk-otter-39  [#######.....]  step 120/200  loss 2.3101  "
		    "5.4k tok/s  ETA 1m20s");
	assert_line(&p, 30, false, "step 120/200  loss 2.3101");
	assert_line(&p, 20, false, "step 120/200");
	assert_line(&p, 12, false, "step 120/200");
	assert_line(&p, 5, false, "step ");
	p.state = "stopping";
	p.eta_ms = -1;
	p.tokens_per_s = NAN;
	assert_line(&p, 0, false, "brisk-otter-39  stopping at step 120/200  loss 2.3101");
	p.step = -1;
	p.state = "queued";
	assert_line(&p, 0, false, "brisk-otter-39  queued");
	assert_line(&p, 40, true, "brisk-otter-39  queued");
}

static void test_never_too_wide(void **state)
{
	(void)state;
	for (int width = 1; width < 200; width++) {
		for (int utf8 = 0; utf8 < 2; utf8++) {
			char *line = progress_line(&running, width, utf8);

			assert_in_range(columns_of(line), 1, width);
			free(line);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_rate_is_recent),
		cmocka_unit_test(test_rate_begins_anew),
		cmocka_unit_test(test_same_time),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_never_too_wide),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
