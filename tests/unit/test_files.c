/* SPDX-License-Identifier: MIT */
/* test_files.c - files replaced whole, folders removed without following links. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/files.h"
#include "tests/unit/forbid.h"

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = -2; /* . and .. */

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_read(void **state)
{
	struct err err = { 0 };
	size_t len;
	char *text;

	(void)state;
	write_text("f", "hello");
	text = file_read("f", 5, &len, &err);
	assert_string_equal(text, "hello");
	assert_int_equal(len, 5);
	free(text);
	assert_null(file_read("f", 4, &len, &err));
	assert_int_equal(err.code, ERR_IO);
	assert_contains(err.text, "larger than 4");
	err_clear(&err);
	assert_null(file_read("missing", 4, NULL, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	assert_null(file_read(".", 4, NULL, &err));
	assert_int_equal(err.code, ERR_IO);
	/* Must not wait for somebody to write into it. */
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_null(file_read("fifo", 4, NULL, NULL));
}

static void test_map(void **state)
{
	struct err err = { 0 };
	size_t bytes;
	void *map;

	(void)state;
	write_text("mapped", "hello");
	map = file_map("mapped", &bytes, &err);
	assert_non_null(map);
	assert_int_equal(bytes, 5);
	assert_memory_equal(map, "hello", 5);
	munmap(map, bytes);
	write_text("nothing", "");
	assert_null(file_map("nothing", &bytes, &err));
	assert_contains(err.text, "nothing: is empty");
	err_clear(&err);
	assert_null(file_map("missing", &bytes, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	err_clear(&err);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_null(file_map("pipe", &bytes, &err));
	assert_contains(err.text, "pipe: not a regular file");
}

static void test_write_atomic(void **state)
{
	struct err err = { 0 };
	struct stat st;
	char *text;

	(void)state;
	assert_int_equal(mkdir("atomic", 0700), 0);
	umask(077);
	assert_int_equal(file_write_atomic("atomic/a", "one", 3, 0644, &err), 0);
	assert_int_equal(file_write_atomic("atomic/a", "two", 3, 0640, &err), 0);
	umask(022);
	stat("atomic/a", &st);
	assert_int_equal(st.st_mode & 07777, 0640);
	text = file_read("atomic/a", 10, NULL, &err);
	assert_string_equal(text, "two");
	free(text);
	assert_int_equal(file_write_atomic("no/such/folder", "x", 1, 0600, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	err_clear(&err);
	/* A folder in the way: the temporary file must go, too. */
	assert_int_equal(mkdir("atomic/d", 0700), 0);
	assert_int_equal(file_write_atomic("atomic/d", "x", 1, 0600, &err), -1);
	assert_int_equal(entries("atomic"), 2);
}

static void test_write_named(void **state)
{
	struct err err = { 0 };
	struct stat st;
	char *text, piped[3];

	(void)state;
	assert_int_equal(mkdir("named", 0700), 0);
	assert_int_equal(file_write_named("named/a", "one", 3, 0600, &err), 0);
	assert_int_equal(symlink("a", "named/l"), 0);
	assert_int_equal(file_write_named("named/l", "two", 3, 0644, &err), 0);
	assert_true(file_is_link("named/l"));
	stat("named/a", &st);
	assert_int_equal(st.st_mode & 07777, 0600);
	text = file_read("named/a", 10, NULL, &err);
	assert_string_equal(text, "two");
	free(text);
	/* Not a file in the pipe's place. */
	assert_int_equal(mkfifo("named/pipe", 0600), 0);
	int reader = open("named/pipe", O_RDONLY | O_NONBLOCK);
	assert_int_equal(file_write_named("named/pipe", "six", 3, 0644, &err), 0);
	assert_int_equal(read(reader, piped, sizeof(piped)), 3);
	assert_memory_equal(piped, "six", 3);
	close(reader);
	stat("named/pipe", &st);
	assert_true(S_ISFIFO(st.st_mode));
	/* Nor one that is hard to remove. */
	int saved = dup(STDOUT_FILENO), ends[2];
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDOUT_FILENO);
	assert_int_equal(file_write_named("-", "two", 3, 0644, &err), 0);
	dup2(saved, STDOUT_FILENO);
	assert_int_equal(read(ends[0], piped, sizeof(piped)), 3);
	assert_memory_equal(piped, "two", 3);
	close(ends[0]), close(ends[1]), close(saved);
	assert_int_equal(access("-", F_OK), -1);
	assert_int_equal(file_write_named("named", "x", 1, 0644, &err), -1);
	assert_contains(err.text, "named: Is a directory");
	assert_int_equal(entries("named"), 3);
}

static void test_write_once(void **state)
{
	struct err err = { 0 };
	char *text;

	(void)state;
	assert_int_equal(mkdir("once", 0700), 0);
	assert_int_equal(file_write_once("once/a", "one", 3, 0644, &err), 0);
	assert_int_equal(file_write_once("once/a", "two", 3, 0644, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	text = file_read("once/a", 10, NULL, NULL);
	assert_string_equal(text, "one");
	free(text);
	/* A dangling link is somebody's, too. */
	assert_int_equal(symlink("nowhere", "once/l"), 0);
	err_clear(&err);
	assert_int_equal(file_write_once("once/l", "two", 3, 0644, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_int_equal(entries("once"), 2);
}

/* As test_write_once, in a process without hard links; 0: so it is. */
static int write_once_without_links(const char *path)
{
	int first = file_write_once(path, "one", 3, 0644, NULL);
	struct err err = { 0 };
	int second = file_write_once(path, "two", 3, 0644, &err);
	char *text = file_read(path, 10, NULL, NULL);
	int rc = first != 0                          ? 1
		 : second == 0                       ? 2
		 : err.code != ERR_LOCKED            ? 3
		 : !text || strcmp(text, "one") != 0 ? 4
						     : 0;

	free(text);
	return rc;
}

static void test_write_once_without_links(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	assert_int_equal(mkdir("linkless", 0700), 0);
	child = fork();
	if (child == 0) {
#ifdef __NR_link
		forbid(__NR_link, EPERM);
#endif
		forbid(__NR_linkat, EPERM);
		if (write_once_without_links("linkless/share") != 0)
			_exit(1);
		forbid(__NR_renameat2, EINVAL);
		_exit(10 * write_once_without_links("linkless/fuse"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void append(const char *path, const char *line)
{
	FILE *file = file_append_lines(path);

	assert_non_null(file);
	fprintf(file, "%s\n", line);
	assert_int_equal(fclose(file), 0);
}

/* Who writes lines may have died, or had no room, in the middle of one. */
static void test_append_lines(void **state)
{
	char *torn = malloc(100000), *text;

	(void)state;
	append("lines", "first");
	append("lines", "second");
	text = file_read("lines", 100, NULL, NULL);
	assert_string_equal(text, "first\nsecond\n");
	free(text);
	memset(torn, 'x', 99999);
	torn[99999] = '\0';
	memcpy(torn, "1\n2\n", 4);
	write_text("lines", torn);
	append("lines", "3");
	text = file_read("lines", 100, NULL, NULL);
	assert_string_equal(text, "1\n2\n3\n");
	free(text);
	memcpy(torn, "none", 4);
	write_text("lines", torn);
	append("lines", "only");
	text = file_read("lines", 100, NULL, NULL);
	assert_string_equal(text, "only\n");
	free(text);
	free(torn);
	append("/dev/null", "nowhere");
}

static void test_folder_make(void **state)
{
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(folder_make("m/a//b/c/", 0750, &err), 0);
	assert_int_equal(folder_make("m/a/b/c", 0750, &err), 0);
	assert_int_equal(stat("m/a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	write_text("m/file", "");
	assert_int_equal(folder_make("m/file", 0750, &err), -1);
	err_clear(&err);
	assert_int_equal(folder_make("m/file/below", 0750, &err), -1);
	err_clear(&err);
	assert_int_equal(folder_make("", 0750, &err), -1);
	assert_int_equal(folder_make("/", 0750, NULL), 0);
}

static void test_folder_make_new(void **state)
{
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(folder_make_new("new/a/b", 0750, &err), 0);
	assert_int_equal(stat("new/a/b", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(symlink("away", "new/link"), 0);
	write_text("new/file", "");
	for (const char **name = (const char *[]){ "new/a/b", "new/link", "new/file", NULL }; *name;
	     name++) {
		assert_int_equal(folder_make_new(*name, 0750, &err), -1);
		assert_int_equal(err.code, ERR_LOCKED);
		err_clear(&err);
	}
	assert_int_equal(folder_make_new("new/file/a", 0750, &err), -1);
	assert_int_equal(err.code, ERR_IO);
}

static void test_folder_remove(void **state)
{
	struct err err = { 0 };

	(void)state;
	folder_make("r/deep/er", 0700, &err);
	folder_make("kept", 0700, &err);
	write_text("kept/precious", "x");
	write_text("r/deep/f", "x");
	assert_int_equal(symlink("../../kept", "r/deep/link"), 0);
	assert_int_equal(symlink("kept", "outer"), 0);
	assert_int_equal(folder_remove("r", &err), 0);
	assert_false(file_exists("r"));
	assert_true(file_exists("kept/precious"));
	/* A link itself is removed, with or without a slash behind it. */
	assert_int_equal(folder_remove("outer/", &err), 0);
	assert_false(file_exists("outer"));
	assert_true(file_exists("kept/precious"));
	assert_int_equal(folder_remove("never/was", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_write_atomic),
		cmocka_unit_test(test_write_once),
		cmocka_unit_test(test_write_once_without_links),
		cmocka_unit_test(test_write_named),
		cmocka_unit_test(test_append_lines),
		cmocka_unit_test(test_folder_make),
		cmocka_unit_test(test_folder_make_new),
		cmocka_unit_test(test_folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
