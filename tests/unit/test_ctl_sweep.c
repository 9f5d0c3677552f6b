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

#include "common/base/json.h"
#include "ctl/base/sweep.h"
#include "ctl/act/sweep_fill.h"

static const struct {
	const char *words[3], *want; /* JSON, or the beginning of what is wrong */
} cases[] = {
	{ { "a.b=1" }, "[[\"a.b=1\"]]" },
	{ { "a.b=1e-4,3e-4", "c=1..3" },
	  "[[\"a.b=1e-4\",\"c=1\"],[\"a.b=1e-4\",\"c=2\"],[\"a.b=1e-4\",\"c=3\"],"
	  "[\"a.b=3e-4\",\"c=1\"],[\"a.b=3e-4\",\"c=2\"],[\"a.b=3e-4\",\"c=3\"]]" },
	{ { "a=[1,2],\"x,y\"" }, "[[\"a=[1,2]\"],[\"a=\\\"x,y\\\"\"]]" },
	{ { "a=-1..1" }, "[[\"a=-1\"],[\"a=0\"],[\"a=1\"]]" },
	{ { "a=0.5..2" }, "[[\"a=0.5..2\"]]" },
	{ { "a" }, "--sweep a: write it as" },
	{ { "=1" }, "--sweep =1: write it as" },
	{ { "a=1," }, "--sweep a=1,: a value is empty" },
	{ { "a=" }, "--sweep a=: a value is empty" },
	{ { "a b=1" }, "--sweep a b=1: write it as" },
	{ { "a=@/nonexistent" }, "--sweep a: /nonexistent: " },
	{ { "a=3..1" }, "--sweep a: \"3..1\" must be a range upwards" },
	{ { "a=1..1001" }, "--sweep a: \"1..1001\" must be a range upwards of at most 1000" },
	{ { "a=1..100", "b=1..11" }, "--sweep: more than 1000 combinations" },
	{ { "a=1", "a=2" }, "--sweep a: comes twice" },
	{ { "a=-9223372036854775808..9223372036854775807" }, "--sweep a: " },
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *words[3];
		struct word_list list = { words, cases[i].words[1] ? 2 : 1 };
		struct err err = { 0 };
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

static json_t *parse(const char *text)
{
	json_t *value = js_parse(text, strlen(text), NULL);

	assert_non_null(value);
	return value;
}

/* Filled once: a value that looks like a placeholder stays what it is. */
static void test_fill(void **state)
{
	json_t *pairs = parse("[\"lr=1e-3\",\"msg=\\\"a,{lr}\\\"\",\"d=/x y\"]");
	char *text = sweep_fill_text("--lr={lr} {msg}{lr}{LR}{}{ {d}", pairs);
	char *name = sweep_fill_name("run-{lr}{d}", pairs);

	(void)state;
	assert_string_equal(text, "--lr=1e-3 a,{lr}1e-3{LR}{}{ /x y");
	assert_string_equal(name, "run-1e-3-x-y");
	free(text);
	free(name);
	json_decref(pairs);
}

static const struct {
	const char *args, *pairs, *want; /* what is sent, or the beginning of what is wrong */
} fills[] = {
	{ "{\"command\":[\"t\",\"{lr}\"],\"set\":[],\"env\":{}}", "[\"lr=1\"]",
	  "{\"command\":[\"t\",\"1\"],\"set\":[\"run.sweep=[\\\"lr=1\\\"]\"],\"env\":{\"LB_SWEEP_lr\":\"1\"}}" },
	{ "{\"toml\":\"a = \\\"{w}\\\"\",\"set\":[],\"env\":{}}", "[\"w=q\\\"\\\\\"]",
	  "{\"toml\":\"a = \\\"q\\\\\\\"\\\\\\\\\\\"\",\"set\":[\"run.sweep=[\\\"w=q\\\\\\\"\\\\\\\\\\\"]\"],\"env\":{\"LB_SWEEP_w\":\"q\\\"\\\\\"}}" },
	{ "{\"command\":[\"t\"],\"set\":[\"x.y=1\"],\"env\":{}}", "[\"a.b=[1,2]\"]",
	  "{\"command\":[\"t\"],\"set\":[\"x.y=1\",\"a.b=[1,2]\"],\"env\":{\"LB_SWEEP_a_b\":\"[1,2]\"}}" },
	{ "{\"command\":[\"t\",\"--lr\",\"1\"]}", "[\"lr=1\"]",
	  "--sweep lr: changes nothing: write {lr}" },
	{ "{\"toml\":\"\"}", "[\"lr=1\"]", "--sweep lr: changes nothing: a setting is written" },
	{ "{\"command\":[\"sh\",\"-c\",\"echo $LB_SWEEP_lr\"],\"set\":[],\"env\":{}}", "[\"lr=1\"]",
	  "{" },
};

static void test_fills(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
		json_t *args = parse(fills[i].args), *pairs = parse(fills[i].pairs);
		json_t *all = json_pack("[O]", pairs), *one = NULL;
		struct err err = { 0 };
		char *text;

		if (sweep_check(args, NULL, all, &err) == 0)
			one = sweep_fill(args, pairs);
		text = one ? js_line(one) : strdup(err.text);
		text[strlen(fills[i].want) < strlen(text) ? strlen(fills[i].want) : strlen(text)] =
			'\0';
		assert_string_equal(text, fills[i].want);
		free(text);
		json_decref(one);
		json_decref(all);
		json_decref(pairs);
		json_decref(args);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_fills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
