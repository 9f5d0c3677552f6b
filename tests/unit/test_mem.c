/* SPDX-License-Identifier: MIT */
/* test_mem.c - strings of any length; text of memory sizes. */
#include "tests/unit/unit.h"

#include "common/base/mem.h"

static void test_buf_keeps_its_maximum(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 10);
	assert_int_equal(buf_add(&buf, "12345", 5), 0);
	assert_int_equal(buf_addf(&buf, "%d", 67890), 0);
	assert_int_equal(buf.len, 10);
	assert_int_equal(buf_add(&buf, "x", 1), -1);
	assert_int_equal(buf_addf(&buf, "y"), -1);
	assert_string_equal(buf.data, "1234567890");
	buf_drop(&buf, 3);
	assert_string_equal(buf.data, "4567890");
	assert_int_equal(buf_add(&buf, "abcd", 4), -1);
	assert_int_equal(buf_add(&buf, "abc", 3), 0);
	assert_string_equal(buf.data, "4567890abc");
	buf_drop(&buf, 99);
	assert_int_equal(buf.len, 0);
	assert_string_equal(buf.data, "");
	buf_fini(&buf);
	buf_fini(&buf);
}

static void test_buf_grows(void **state)
{
	struct buf buf;
	char *text;

	(void)state;
	buf_init(&buf, SIZE_MAX);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_addf(&buf, "%04d", i), 0);
	assert_int_equal(buf.len, 40000);
	assert_int_equal(strlen(buf.data), 40000);
	text = buf_take(&buf);
	assert_memory_equal(text + 39996, "9999", 4);
	assert_null(buf.data);
	free(text);
	text = buf_take(&buf);
	assert_string_equal(text, "");
	free(text);
}

static void test_strings(void **state)
{
	char *a = xstrndup("abcdef", 3), *b = xstrndup("ab", 10), *c = xasprintf("%s-%d", "x", 7);

	(void)state;
	assert_string_equal(a, "abc");
	assert_string_equal(b, "ab");
	assert_string_equal(c, "x-7");
	free(a);
	free(b);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buf_keeps_its_maximum),
		cmocka_unit_test(test_buf_grows),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
