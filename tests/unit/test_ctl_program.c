/* SPDX-License-Identifier: MIT */
/* test_ctl_program.c - what another program says, whatever bytes it says it with. */
#include "tests/unit/unit.h"

#include "ctl/base/program.h"

static void test_output(void **state)
{
	static const struct {
		const char *format, *out;
	} cases[] = {
		{ "", "" },
		{ "one", "one" },
		{ "one\\n", "one" },
		{ "a\\nb\\n\\n", "a\nb\n" },
		{ "\\n", "" },
		{ "\\0one\\n", "" },
		{ "one\\0two\\n", "one" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const argv[] = { "printf", cases[i].format, NULL };
		struct err err = { 0 };
		char *out;

		assert_int_equal(program_output(argv, 20000, &out, &err), 0);
		assert_string_equal(out, cases[i].out);
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
