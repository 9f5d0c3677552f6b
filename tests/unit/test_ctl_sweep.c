/* SPDX-License-Identifier: MIT */
/* test_ctl_sweep.c - what --sweep stands for, as a table of words and the combinations they
 * give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "ctl/sweep.h"

static const struct {
	const char *words[3], *want;	/* JSON, or the beginning of what is wrong */
} cases[] = {
	{{"a.b=1"}, "[[\"a.b=1\"]]"},
	{{"a.b=1e-4,3e-4", "c=1..3"},
	 "[[\"a.b=1e-4\",\"c=1\"],[\"a.b=1e-4\",\"c=2\"],[\"a.b=1e-4\",\"c=3\"],"
	 "[\"a.b=3e-4\",\"c=1\"],[\"a.b=3e-4\",\"c=2\"],[\"a.b=3e-4\",\"c=3\"]]"},
	{{"a=[1,2],\"x,y\""}, "[[\"a=[1,2]\"],[\"a=\\\"x,y\\\"\"]]"},
	{{"a=-1..1"}, "[[\"a=-1\"],[\"a=0\"],[\"a=1\"]]"},
	{{"a=0.5..2"}, "[[\"a=0.5..2\"]]"},
	{{"a"}, "--sweep a: write it as"},
	{{"=1"}, "--sweep =1: write it as"},
	{{"a=1,"}, "--sweep a=1,: a value is empty"},
	{{"a="}, "--sweep a=: a value is empty"},
	{{"a=3..1"}, "--sweep a: \"3..1\" must be a range upwards"},
	{{"a=1..1001"}, "--sweep a: \"1..1001\" must be a range upwards of at most 1000"},
	{{"a=1..100", "b=1..11"}, "--sweep: more than 1000 combinations"},
	{{"a=1", "a=2"}, "--sweep a: comes twice"},
	{{"a=-9223372036854775808..9223372036854775807"}, "--sweep a: "},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *words[3];
		struct word_list list = {words, cases[i].words[1] ? 2 : 1};
		struct err err = {0};
		json_t *all;
		char *text;

		memcpy(words, cases[i].words, sizeof(words));
		all = sweep_combinations(&list, &err);
		text = all ? js_line(all) : strndup(err.text, strlen(cases[i].want));
		assert_string_equal(text, cases[i].want);
		free(text);
		json_decref(all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
