/* SPDX-License-Identifier: MIT */
/* test_selector.c - which runs a word means, and which words mean none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/team/selector.h"

static void test_words(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text;
		int kind; /* -1: refused */
	} rows[] = {
		{"a", SELECT_RUN}, {"brisk-otter-39", SELECT_RUN}, {"a.kill", SELECT_RUN},
		{"*", SELECT_GLOB}, {"sweep-*", SELECT_GLOB}, {"?", SELECT_GLOB},
		{"sweep-3@group", SELECT_GROUP}, {"ada@user", SELECT_USER}, {"1001@user", SELECT_USER},
		{"ada@site.org@user", SELECT_USER}, {"ALL", SELECT_ALL},
		{"", -1}, {"@group", -1}, {"@user", -1}, {"a@b", -1}, {"a@groups", -1}, {"*@group", -1},
		{"-a", -1}, {"-*", -1}, {".*", -1}, {"../*", -1}, {"a/b", -1}, {"a b", -1}, {"a\n*", -1},
		{"*\x1b[31m", -1}, {"*\xff", -1}, {"*%n$(x)`y`;'\"", -1}, {"[ab]", -1}, {"-x@user", -1},
		{"*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -1},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct selector s;
		struct err err = { 0 };
		int rc = selector_parse(rows[i].text, &s, &err);

		if (rc < 0 ? rows[i].kind >= 0 : (int)s.kind != rows[i].kind)
			fail_msg("\"%s\": %d, kind %d, %s", rows[i].text, rc, (int)s.kind,
				 err.text);
		for (const char *c = err.text; *c; c++)
			assert_true(*c >= ' ' && *c < 0x7f);
	}
}

static void test_matches(void **state)
{
	/* clang-format off */
	static const struct {
		const char *selector, *name, *group, *owner;
		bool matches;
	} rows[] = {
		{"a", "a", "", "ada", true}, {"a", "ab", "", "ada", false},
		{"a*", "a", "", "ada", true}, {"a*", "ba", "", "ada", false}, {"*a", "ba", "", "ada", true},
		{"*a*b", "xaxxb", "", "ada", true}, {"*a*b", "xaxx", "", "ada", false},
		{"?", "a", "", "ada", true}, {"?", "ab", "", "ada", false}, {"a?c*", "abcd", "", "x", true},
		{"g@group", "a", "g", "ada", true}, {"g@group", "g", "", "g", false},
		{"g@group", "a", NULL, "ada", false}, {"ada@user", "a", "", "ada", true},
		{"ada@user", "ada", "ada", "bob", false}, {"ALL", "a", NULL, "ada", true},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct selector s;

		assert_int_equal(selector_parse(rows[i].selector, &s, NULL), 0);
		if (selector_matches(&s, rows[i].name, rows[i].group, rows[i].owner) !=
		    rows[i].matches)
			fail_msg("%s against %s", rows[i].selector, rows[i].name);
	}
}

/* A stranger's pattern must not cost more than its length: a backtracking matcher takes years. */
static void test_hard_globs(void **state)
{
	struct selector s;
	clock_t start = clock();

	(void)state;
	assert_int_equal(selector_parse("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
					&s, NULL),
			 0);
	for (int i = 0; i < 1000; i++)
		assert_false(
			selector_matches(&s,
					 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					 "aaaaaaaaa",
					 "", ""));
	assert_true(clock() - start < CLOCKS_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_hard_globs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
