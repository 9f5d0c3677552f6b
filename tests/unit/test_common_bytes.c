/* SPDX-License-Identifier: MIT */
/* test_common_bytes.c - any C string survives the way through JSON text and back, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"

static void there_and_back(const char *s)
{
	json_t *v = js_bytes(s);
	char *text = json_dumps(v, JSON_ENCODE_ANY);
	json_t *again = json_loads(text, JSON_DECODE_ANY, NULL);
	char *back = js_bytes_take(again);

	assert_non_null(back);
	assert_string_equal(back, s);
	free(back);
	free(text);
	json_decref(again);
	json_decref(v);
}

static void test_round_trip(void **state)
{
	static const char *const cases[] = {
		"",
		"plain",
		"two words",
		"$(rm -rf /);`x`\n\t\"'\\",
		"\xc3\xa4\xe2\x82\xac",
		"\xff",
		"\x80\x81",
		"a\xc3",
		"\xed\xa0\x80",
		"\xf5\x80\x80\x80",
		"\x1b[31m",
		"\x01\x7f",
	};
	char every[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		there_and_back(cases[i]);
	for (int i = 0; i < 255; i++)
		every[i] = (char)(i + 1);
	every[255] = '\0';
	there_and_back(every);
}

static void test_form(void **state)
{
	json_t *text = js_bytes("abc");
	json_t *hex = js_bytes("a\xff");

	(void)state;
	assert_true(json_is_string(text));
	assert_string_equal(json_string_value(json_object_get(hex, "hex")), "61ff");
	json_decref(text);
	json_decref(hex);
}

static void test_refused(void **state)
{
	static const char *const cases[] = {
		"null",
		"1",
		"[]",
		"{}",
		"{\"hex\":1}",
		"{\"hex\":\"6\"}",
		"{\"hex\":\"zz\"}",
		"{\"hex\":\"00\"}",
		"{\"hex\":\"610062\"}",
		"{\"hex\":\"6A\"}",
		"{\"hex\":\"61\",\"more\":1}",
		"\"a\\u0000b\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *v = json_loads(cases[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		assert_non_null(v);
		assert_null(js_bytes_take(v));
		json_decref(v);
	}
	assert_null(js_bytes_take(NULL));
}

static void test_keys(void **state)
{
	static const char *const names[] = { "PATH", "BASH_FUNC_module%%", "a.b", "=x", "", "a\xff",
					     " " };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *key = js_bytes_key(names[i]), *back = js_bytes_key_take(key);
		json_t *object = json_object();

		assert_int_equal(json_object_set_new(object, key, json_null()), 0);
		assert_string_equal(back, names[i]);
		json_decref(object);
		free(key);
		free(back);
	}
	assert_null(js_bytes_key_take("=6"));
	assert_null(js_bytes_key_take("=00"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
