/* SPDX-License-Identifier: MIT */
/* test_names.c - which names runs may have. */
#include "tests/unit/unit.h"

#include "common/base/names.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_check(void **state)
{
	static const struct {
		const char *name, *part; /* part of the message; NULL = allowed */
	} cases[] = {
		{ "a", NULL },
		{ "brisk-otter-39", NULL },
		{ "A.b_c-9", NULL },
		{ "all", NULL },
		{ A64, NULL },
		{ A64 "a", "longer than 64" },
		{ "", "empty" },
		{ "ALL", "reserved" },
		{ "..", "must start" },
		{ "a..b", "\"..\" is not allowed" },
		{ ".hidden", "must start" },
		{ "-rf", "must start" },
		{ "_x", "must start" },
		{ "../x", "must start" },
		{ "a/b", "allowed are" },
		{ "a;b", "allowed are" },
		{ "a b", "allowed are" },
		{ "a\nb", "bad name \"a\\x0ab\": allowed are" },
		{ "a\xff", "bad name \"a\\xff\": allowed are" },
		{ "\xc3\xa4", "must start" },
		{ "a\"\\", "a\\x22\\x5c" },
		{ "a\x1b[2J", "a\\x1b[2J" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		int rc = name_check(cases[i].name, &err);

		assert_int_equal(rc, cases[i].part ? -1 : 0);
		if (cases[i].part) {
			assert_int_equal(err.code, ERR_USAGE);
			assert_contains(err.text, cases[i].part);
		}
	}
}

static void test_long_name_is_cut_in_message(void **state)
{
	char name[301];
	struct err err = { 0 };

	(void)state;
	memset(name, '\1', 300);
	name[300] = '\0';
	assert_int_equal(name_check(name, &err), -1);
	assert_contains(err.text, "...");
	assert_true(strlen(err.text) < 260);
}

static void test_drawn_names_are_good(void **state)
{
	char a[NAME_MAX_BYTES + 1], b[NAME_MAX_BYTES + 1];

	(void)state;
	for (uint64_t i = 0; i < 5000; i++) {
		name_draw(i * 0x9e3779b97f4a7c15, a);
		assert_int_equal(name_check(a, NULL), 0);
	}
	name_draw(UINT64_MAX, a);
	assert_int_equal(name_check(a, NULL), 0);
	name_draw(1, a);
	name_draw(2, b);
	assert_string_not_equal(a, b);
	name_draw(1, b);
	assert_string_equal(a, b);
}

static void test_tokens(void **state)
{
	char a[TOKEN_HEX + 1], b[TOKEN_HEX + 1];

	(void)state;
	token_draw(a);
	token_draw(b);
	assert_int_equal(strspn(a, "0123456789abcdef"), TOKEN_HEX);
	assert_int_equal(a[TOKEN_HEX], '\0');
	assert_string_not_equal(a, b);
	assert_true(random_u64() != random_u64());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_long_name_is_cut_in_message),
		cmocka_unit_test(test_drawn_names_are_good),
		cmocka_unit_test(test_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
