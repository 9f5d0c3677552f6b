/* SPDX-License-Identifier: MIT */
/* test_zst.c - compressed files come back, and damaged ones are told. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/zst.h"

static int folder;

static int set_up(void **state)
{
	(void)state;
	folder_remove("f", NULL);
	assert_int_equal(mkdir("f", 0755), 0);
	folder = open("f", O_RDONLY | O_DIRECTORY);
	return folder < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(folder);
	return 0;
}

static int collect(const char *data, size_t len, void *arg)
{
	return buf_add(arg, data, len);
}

static void fill(const char *path, size_t lines)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < lines; i++)
		fprintf(f, "step %zu loss %f\n", i, 1.0 / (double)(i + 1));
	fclose(f);
}

/* Nothing, a little, and more than one buffer. */
static void test_there_and_back(void **state)
{
	static const size_t sizes[] = { 0, 3, 50000 };

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct err err = { 0 };
		struct stat before, after;
		struct buf buf;
		char *text;
		size_t len;

		fill("f/out.log", sizes[i]);
		chmod("f/out.log", 0640);
		stat("f/out.log", &before);
		text = file_read("f/out.log", 1 << 24, &len, &err);
		assert_int_equal(zst_compress(folder, "out.log", &err), 0);
		assert_false(file_exists("f/out.log"));
		assert_int_equal(stat("f/out.log.zst", &after), 0);
		assert_int_equal(after.st_mode, before.st_mode);
		assert_int_equal(after.st_mtime, before.st_mtime);
		if (sizes[i] > 1000)
			assert_true(after.st_size < before.st_size / 2);
		buf_init(&buf, 1 << 24);
		assert_int_equal(zst_read("f/out.log.zst", collect, &buf, &err), 0);
		assert_int_equal(buf.len, len);
		if (len > 0)
			assert_memory_equal(buf.data, text, len);
		buf_fini(&buf);
		free(text);
	}
}

static void test_strangers_are_left_alone(void **state)
{
	struct err err = { 0 };

	(void)state;
	fill("elsewhere", 10);
	assert_int_equal(symlink("../elsewhere", "f/link"), 0);
	assert_int_equal(zst_compress(folder, "link", &err), -1);
	assert_int_equal(link("elsewhere", "f/twin"), 0);
	err_clear(&err);
	assert_int_equal(zst_compress(folder, "twin", &err), -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_int_equal(mkfifo("f/pipe", 0644), 0);
	err_clear(&err);
	assert_int_equal(zst_compress(folder, "pipe", &err), -1);
	assert_true(file_exists("elsewhere") && file_exists("f/twin"));
	unlink("elsewhere");
}

static void test_a_torn_file_is_told(void **state)
{
	struct err err = { 0 };
	struct buf buf;

	(void)state;
	fill("f/out.log", 50000);
	assert_int_equal(zst_compress(folder, "out.log", &err), 0);
	assert_int_equal(truncate("f/out.log.zst", 20000), 0);
	buf_init(&buf, 1 << 24);
	assert_int_equal(zst_read("f/out.log.zst", collect, &buf, &err), -1);
	assert_contains(err.text, "damaged, or it ends early");
	assert_true(buf.len > 0);
	buf_fini(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strangers_are_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_torn_file_is_told, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
