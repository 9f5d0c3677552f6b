/* SPDX-License-Identifier: MIT */
/* test_paths.c - paths put together and taken apart. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "common/base/paths.h"

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void test_lb_home(void **state)
{
	static const struct {
		const char *lb_home, *xdg, *home, *path;
	} cases[] = {
		{ "/a/b", "/x", "/h", "/a/b" },
		{ "/a/b///", "/x", "/h", "/a/b" },
		{ "/", "/x", "/h", "/" },
		{ "", "/x", "/h", "/x/lb" },
		{ NULL, "/x/", "/h", "/x//lb" },
		{ NULL, "relative", "/h", "/h/.local/state/lb" },
		{ NULL, NULL, "/h", "/h/.local/state/lb" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *path;

		set("LB_HOME", cases[i].lb_home);
		set("XDG_STATE_HOME", cases[i].xdg);
		set("HOME", cases[i].home);
		path = path_lb_home(NULL);
		assert_string_equal(path, cases[i].path);
		free(path);
	}
}

static void test_relative_home(void **state)
{
	char cwd[4096], expected[4200], *path;

	(void)state;
	set("LB_HOME", "here/");
	path = path_lb_home(NULL);
	snprintf(expected, sizeof(expected), "%s/here", getcwd(cwd, sizeof(cwd)));
	assert_string_equal(path, expected);
	free(path);
}

static void test_sibling(void **state)
{
	struct err err = { 0 };
	char *path = path_sibling("test_paths", &err);

	(void)state;
	assert_non_null(path);
	assert_int_equal(path[0], '/');
	assert_int_equal(access(path, X_OK), 0);
	free(path);
	assert_null(path_sibling("no-such-program", &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	path = path_join("%s/%d", "a", 5);
	assert_string_equal(path, "a/5");
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lb_home),
		cmocka_unit_test(test_relative_home),
		cmocka_unit_test(test_sibling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
