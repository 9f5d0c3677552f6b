/* SPDX-License-Identifier: MIT */
/* test_json.c - JSON from outside: what is taken, what is refused. */
#include "tests/unit/unit.h"

#include <math.h>

#include "common/base/json.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{ "{}", true },
		{ " [1, 2.5, \"x\", null, true] ", true },
		{ "7", true },
		{ "{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}", true },
		{ "", false },
		{ "{", false },
		{ "{} {}", false },
		{ "{\"a\":1,\"a\":2}", false },
		{ "{'a':1}", false },
		{ "[1,]", false },
		{ "NaN", false },
		{ "\"\xff\"", false },
		{ "\"\\u0000\"", false },
		{ "1e999", false },
		{ "99999999999999999999", false },
		{ "// x\n{}", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		json_t *v = js_parse(cases[i].text, strlen(cases[i].text), &err);

		if ((v != NULL) != cases[i].ok)
			fail_msg("%s", cases[i].text);
		assert_int_equal(err.code, cases[i].ok ? ERR_NONE : ERR_USAGE);
		json_decref(v);
	}
	assert_null(js_parse("1\0", 2, NULL));
	assert_null(js_parse("{}\0{}", 5, NULL));
}

static void test_depth(void **state)
{
	char text[200001];
	struct err err = { 0 };
	json_t *v;

	(void)state;
	memset(text, '[', JS_MAX_DEPTH);
	memset(text + JS_MAX_DEPTH, ']', JS_MAX_DEPTH);
	v = js_parse(text, 2 * JS_MAX_DEPTH, &err);
	assert_non_null(v);
	json_decref(v);
	memset(text, '[', 100000);
	memset(text + 100000, ']', 100000);
	assert_null(js_parse(text, 200000, &err));
	assert_contains(err.text, "deeper than 32");
}

static void test_getters(void **state)
{
	static const char text[] =
		"{\"s\":\"x\",\"i\":7,\"r\":-2.9,\"b\":true,\"n\":null,\"big\":1e300}";
	json_t *o = js_parse(text, sizeof(text) - 1, NULL);

	(void)state;
	assert_string_equal(js_str(o, "s", "-"), "x");
	assert_string_equal(js_str(o, "i", "-"), "-");
	assert_string_equal(js_str(o, "n", "-"), "-");
	assert_string_equal(js_str(NULL, "n", "-"), "-");
	assert_int_equal(js_int(o, "i", -1), 7);
	assert_int_equal(js_int(o, "r", -1), -2);
	assert_int_equal(js_int(o, "big", -1), -1);
	assert_int_equal(js_int(o, "s", -1), -1);
	assert_true(js_real(o, "i", 0) == 7.0);
	assert_true(js_real(o, "r", 0) == -2.9);
	assert_true(js_bool(o, "b", false));
	assert_true(js_bool(o, "i", true));
	json_decref(o);
}

static void test_setters_and_line(void **state)
{
	json_t *o = json_object();
	char *line;

	(void)state;
	js_set_str(o, "a", NULL);
	js_set_str(o, "b", "x\ny");
	js_set_str(o, "c", "bad\xff");
	js_set_int(o, "d", JS_NONE);
	js_set_int(o, "e", -5);
	js_set_real(o, "f", NAN);
	js_set_real(o, "g", INFINITY);
	js_set_real(o, "h", 0.5);
	js_set_bool(o, "i", true);
	js_set_time(o, "j", 0);
	js_set_time(o, "k", 1500);
	line = js_line(o);
	assert_string_equal(line,
			    "{\"a\":null,\"b\":\"x\\ny\",\"c\":\"bad?\",\"d\":null,\"e\":-5,"
			    "\"f\":null,\"g\":null,\"h\":0.5,\"i\":true,\"j\":null,\"k\":1.5}");
	free(line);
	json_decref(o);
}

static void test_load(void **state)
{
	struct err err = { 0 };
	json_t *v;

	(void)state;
	write_text("a.json", "{\"x\":1}\n");
	v = js_load("a.json", 100, &err);
	assert_int_equal(js_int(v, "x", 0), 1);
	json_decref(v);
	assert_null(js_load("none.json", 100, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	write_text("a.json", "{");
	assert_null(js_load("a.json", 100, &err));
	assert_contains(err.text, "a.json: bad JSON at line 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_getters),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_setters_and_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
