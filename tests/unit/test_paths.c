/* SPDX-License-Identifier: MIT */
/* test_paths.c - paths put together and taken apart. */
#include "tests/unit/unit.h"

#include <glob.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/files.h"
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

/* Whichever variable it is from, what is written into scripts and sockets must fit. */
static void test_home_is_checked(void **state)
{
	struct err err = { 0 };
	char deep[2 * PATH_HOME_MAX];

	(void)state;
	memset(deep, 'x', sizeof(deep) - 1);
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	set("LB_HOME", NULL);
	set("XDG_STATE_HOME", NULL);
	set("HOME", "/a\nb");
	assert_null(path_lb_home(&err));
	assert_contains(err.text, "a line break");
	err = (struct err){ 0 };
	set("HOME", deep);
	assert_null(path_lb_home(&err));
	assert_contains(err.text, "are allowed");
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

static void test_tmp(void **state)
{
	(void)state;
	set("TMPDIR", NULL);
	assert_string_equal(path_tmp(), "/tmp");
	set("TMPDIR", "here");
	assert_string_equal(path_tmp(), "/tmp");
	set("TMPDIR", "/tmp/of-a-job-that-is-over");
	assert_string_equal(path_tmp(), "/tmp");
	set("TMPDIR", "/dev/shm");
	assert_string_equal(path_tmp(), "/dev/shm");
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

static void test_literal(void **state)
{
	const char *const names[] = {
		"a", "a[1]", "a*", "a?b", "a\\b", "a{b,c}", "ab", "a1", "ac"
	};

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		assert_int_equal(mkdir(names[i], 0755), 0);
	for (size_t i = 0; i < 2 * COUNT(names); i++) {
		char *pattern = path_literal(names[i / 2]);
		glob_t found;

		assert_int_equal(glob(pattern, i % 2 ? GLOB_BRACE : 0, NULL, &found), 0);
		assert_int_equal(found.gl_pathc, 1);
		assert_string_equal(found.gl_pathv[0], names[i / 2]);
		globfree(&found);
		free(pattern);
	}
}

static void test_below(void **state)
{
	static const struct {
		const char *path, *folder, *below;
	} cases[] = {
		{ "/a/b/c/d", "/a/b", "c/d" }, { "/a/b", "/a/b", NULL },
		{ "/a/bc/d", "/a/b", NULL },   { "/a", "/a/b", NULL },
		{ "/a/b/", "/a/b", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *below = path_below(cases[i].path, cases[i].folder);

		assert_int_equal(below == NULL, cases[i].below == NULL);
		if (below)
			assert_string_equal(below, cases[i].below);
	}
}

/* The child of test_own_program: an upgrade takes its file away. */
static int begin_replaced(const char *path)
{
	char own[PATH_MAX];
	bool was_right = path_own_program(own, NULL) == 0 && strcmp(own, path) == 0;

	unlink(path);
	return was_right && path_own_program(own, NULL) == 0 && strcmp(own, path) == 0 ? 0 : 1;
}

static void test_own_program(void **state)
{
	char folder[] = "/tmp/lb-paths.XXXXXX";
	char *path, *bytes, own[PATH_MAX];
	size_t len;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(path_own_program(own, NULL), 0);
	assert_non_null(mkdtemp(folder));
	path = path_join("%s/program", folder);
	bytes = file_read(own, 1 << 30, &len, NULL);
	assert_non_null(bytes);
	assert_int_equal(file_write_visible(path, bytes, len, 0700, NULL), 0);
	free(bytes);
	pid = fork();
	if (pid == 0) {
		execl(path, path, "--replaced", path, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rmdir(folder);
	free(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lb_home),     cmocka_unit_test(test_relative_home),
		cmocka_unit_test(test_tmp),         cmocka_unit_test(test_sibling),
		cmocka_unit_test(test_own_program), cmocka_unit_test(test_home_is_checked),
		cmocka_unit_test(test_below),       cmocka_unit_test(test_literal),
	};

	if (argc == 3 && strcmp(argv[1], "--replaced") == 0)
		return begin_replaced(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
