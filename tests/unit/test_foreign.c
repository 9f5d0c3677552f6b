/* SPDX-License-Identifier: MIT */
/* Checkpoints of other trainers, and the regular expressions behind them. */
#include "tests/unit/unit.h"

#include "common/files.h"
#include "common/foreign.h"
#include "common/regexp.h"

static void test_steps(void **state)
{
	static const struct {
		const char *pattern, *name;
		int64_t step;
	} cases[] = {
		{"step-{step}", "step-100", 100},
		{"step-{step}", "step-0100", 100},
		{"step-{step}", "step-100.tmp", -1},
		{"step-{step}", "xstep-100", -1},
		{"step-{step}", "step-", -1},
		{"epoch=*-step={step}.ckpt", "epoch=1-step=500.ckpt", 500},
		{"model_{step}.b?n", "model_00000020.bin", 20},
		{"model_{step}.bin", "model_7xbin", -1},
		{"{step}", "9999999999999999999999", -1},
		{"iter_(?<step>\\d+)(_final)?", "iter_0000300_final", 300},
		{"iter_(?<step>\\d+)", "iter_300x", -1},
		{"c_(?<step>\\w+)", "c_abc", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};
		struct foreign *f = foreign_create(cases[i].pattern, NULL, &err);

		if (!f)
			fail_msg("%s", err.text);
		assert_int_equal(foreign_step(f, cases[i].name), cases[i].step);
		foreign_destroy(f);
	}
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *pattern, *text;
	} cases[] = {
		{"step-(", "bad regular expression at character 7: missing closing parenthesis"},
		{"step-(\\d+)", "must contain {step}"},
		{"", "must contain {step}"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};

		assert_null(foreign_create(cases[i].pattern, NULL, &err));
		assert_contains(err.text, cases[i].text);
	}
}

static char told[256];

static void on_bad(const char *path, const struct err *why, void *arg)
{
	(void)path;
	(void)arg;
	snprintf(told, sizeof(told), "%.250s", why->text);
}

static int newest(const char *pattern, const char *complete_when, struct checkpoint_found *out)
{
	struct foreign *f = foreign_create(pattern, complete_when, NULL);
	int found;

	told[0] = '\0';
	found = foreign_newest(f, "c", true, out, on_bad, NULL, NULL);
	foreign_destroy(f);
	return found;
}

static void test_newest(void **state)
{
	struct checkpoint_found found;

	(void)state;
	assert_int_equal(newest("step-{step}", ".metadata", &found), 0);
	folder_make("c/step-20", 0700, NULL);
	assert_int_equal(newest("step-{step}", ".metadata", &found), 0);
	assert_contains(told, "c/step-20 is not complete: no .metadata");
	folder_make("c/step-3", 0700, NULL);
	write_text("c/step-3/.metadata", "x");
	assert_int_equal(newest("step-{step}", ".metadata", &found), 1);
	assert_int_equal(found.step, 3);
	assert_string_equal(found.path, "c/step-3");
	write_text("c/step-20/.metadata", "x");
	assert_int_equal(newest("step-{step}", ".metadata", &found), 1);
	assert_int_equal(found.step, 20);
	assert_string_equal(told, "");
	/* files, with a mark beside them */
	write_text("c/model_00000050.bin", "x");
	write_text("c/model_00000040.bin", "x");
	write_text("c/DONE_00000040", "");
	assert_int_equal(newest("model_{step}.bin", "DONE_{step}", &found), 1);
	assert_int_equal(found.step, 40);
	assert_int_equal(newest("model_{step}.bin", NULL, &found), 1);
	assert_int_equal(found.step, 50);
	/* a manifest that does not hold is worse than none */
	assert_int_equal(newest("step-{step}", "manifest", &found), 0);
	write_text("c/step-20/manifest.json", "{}");
	assert_int_equal(newest("step-{step}", "manifest", &found), -1);
	assert_string_equal(found.path, "");
}

static void test_bounded(void **state)
{
	struct regexp *r = regexp_create("(a+)+$", false, NULL);
	char text[2001];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 2] = '!';
	assert_false(regexp_match(r, text, sizeof(text) - 1));
	regexp_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
