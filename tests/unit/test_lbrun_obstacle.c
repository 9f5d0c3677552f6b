/* SPDX-License-Identifier: MIT */
/* test_lbrun_obstacle.c - what is in the way of a program, asked by a user to whom something is
 * closed. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/trainer/obstacle.h"

static char top[] = "/tmp/lb-obstacle.XXXXXX";
enum { NOBODY = 65534 };

static void put(const char *name, const char *text, mode_t mode)
{
	char *path = path_join("%s/%s", top, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	free(path);
}

static void folder(const char *name, mode_t mode)
{
	char *path = path_join("%s/%s", top, name);

	mkdir(path, 0700);
	assert_int_equal(chmod(path, mode), 0);
	free(path);
}

static void linked(const char *from, const char *to)
{
	char *path = path_join("%s/%s", top, to), *target = path_join("%s/%s", top, from);

	assert_int_equal(symlink(target, path), 0);
	free(path);
	free(target);
}

static int setup(void **state)
{
	(void)state;
	umask(022);
	assert_non_null(mkdtemp(top));
	folder(".", 0755);
	folder("open", 0755);
	folder("private", 0755);
	put("private/python", "x", 0755);
	put("open/plain", "x", 0644);
	put("open/good", "#!/bin/sh\n", 0755);
	put("open/moved", "#!/no/such/python -u\n", 0755);
	put("open/windows", "#!/bin/sh\r\n", 0755);
	linked("private/python", "open/python"); /* as in a venv */
	linked("open/nothing", "open/dangling");
	folder("private", 0700);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* As a user who is not root: to root nothing is closed. */
static void check(const char *name, const char *search, const char *wanted, bool is_folder)
{
	char *path = name[0] == '/' || search ? xstrdup(name) : path_join("%s/%s", top, name);
	char *want = wanted ? path_join(wanted, top, top, top) : xstrdup("none");
	pid_t child = fork();
	int status;

	if (child == 0) {
		char *text;

		if (geteuid() == 0 && setuid(NOBODY) < 0)
			_exit(2);
		text = is_folder ? obstacle_to_folder(path) : obstacle_to_program(path, search);
		if (wanted ? text && strstr(text, want) != NULL : !text)
			_exit(0);
		fprintf(stderr, "%s: got %s, wanted %s\n", path, text ? text : "none", want);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	free(path);
	free(want);
	assert_int_equal(status, 0);
}

static void test_programs(void **state)
{
	char *search = path_join("%s/open:/bin", top);

	(void)state;
	if (geteuid() == 0) { /* to its owner the folder is open */
		check("private/python", NULL, "the folder %s/private is closed to ", false);
		check("private/python", NULL, "(mode 0700, of root)", false);
		check("open/python", NULL, "the folder %s/private is closed to ", false);
		check("python", search, "the folder %s/private is closed to ", false);
	}
	check("open/plain", NULL, "the file %s/open/plain may not be run by ", false);
	check("open/nothing", NULL, "there is no %s/open/nothing", false);
	check("open/dangling", NULL, "there is no %s/open/nothing", false);
	check("open/none/x", NULL, "there is no %s/open/none", false);
	check("open/plain/x", NULL, "is no folder", false);
	check("open", NULL, "%s/open is a folder", false);
	check("open/moved", NULL,
	      "the first line of %s/open/moved names /no/such/python: there is no /no", false);
	check("open/windows", NULL, "dos2unix", false);
	check("open/good", NULL, NULL, false);
	check("good", search, NULL, false);
	check("trian.py", search, "there is no such program in the job's PATH (%s/open:/bin)",
	      false);
	free(search);
}

/* Only root can mount one, and not everywhere. */
static void test_noexec(void **state)
{
	char *folder = path_join("%s/noexec", top), *program = path_join("%s/good", folder);
	char *want = xasprintf("%s is mounted noexec", program), *text;
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		if (mkdir(folder, 0755) < 0 || unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", folder, "tmpfs", MS_NOEXEC, NULL) < 0)
			_exit(0);
		write_text(program, "#!/bin/sh\n");
		chmod(program, 0755);
		text = obstacle_to_program(program, NULL);
		_exit(text && strstr(text, want) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(folder);
	free(program);
	free(want);
}

static void test_folders(void **state)
{
	(void)state;
	if (geteuid() == 0) {
		check("private", NULL, "the folder %s/private is closed to ", true);
		check("private/x/y", NULL, "the folder %s/private is closed to ", true);
	}
	check("open/plain", NULL, "is no folder", true);
	check("open/gone", NULL, "there is no %s/open/gone", true);
	check("open", NULL, NULL, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_noexec),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
