/* SPDX-License-Identifier: MIT */
/* test_err.c - one line, the first error wins, context stands in front. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "common/base/err.h"
#include "common/base/text.h"

static void test_first_wins(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, ERR_LOCKED, "one %d", 1), -1);
	assert_int_equal(err_set(&err, ERR_IO, "two"), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	assert_string_equal(err.text, "one 1");
	assert_int_equal(err_wrap(&err, "run %s", "x"), -1);
	assert_string_equal(err.text, "run x: one 1");
	err_clear(&err);
	assert_int_equal(err.code, ERR_NONE);
	assert_string_equal(err.text, "");
}

static void test_path_once(void **state)
{
	struct err err = { 0 };
	char *text;

	(void)state;
	err_set(&err, ERR_IO, "/a/b: gone");
	err_wrap(&err, "/a/b");
	assert_string_equal(err.text, "/a/b: gone");
	err_wrap(&err, "/a");
	assert_string_equal(err.text, "/a: /a/b: gone");
	text = text_about("/a/b", "/a/b: gone");
	assert_string_equal(text, "/a/b: gone");
	free(text);
	text = text_about("/a/b", "no valid checkpoint in /a/b");
	assert_string_equal(text, "no valid checkpoint in /a/b");
	free(text);
	text = text_about("/a/b", "/a/bc: gone");
	assert_string_equal(text, "/a/b: /a/bc: gone");
	free(text);
	text = text_about("/a/b", "x/a/b gone");
	assert_string_equal(text, "/a/b: x/a/b gone");
	free(text);
}

static void test_null_is_fine(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_IO, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
	assert_int_equal(err_errno(NULL, "x"), -1);
	err_clear(NULL);
}

static void test_own_text_as_argument(void **state)
{
	struct err err = { 0 };

	(void)state;
	err_set(&err, ERR_IO, "disk");
	err_wrap(&err, "<%s>", err.text);
	assert_string_equal(err.text, "<disk>: disk");
}

static void test_errno(void **state)
{
	struct err err = { 0 };
	char path[1000];

	(void)state;
	errno = ENOSPC;
	assert_int_equal(err_errno(&err, "/a/b"), -1);
	assert_int_equal(err.code, ERR_IO);
	assert_string_equal(err.text, "/a/b: No space left on device");
	err_clear(&err);
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	errno = EACCES;
	err_errno(&err, "%s", path);
	assert_contains(err.text, ": Permission denied");
	assert_int_equal(strlen(err.text), ERR_TEXT_BYTES - 1);
}

static void test_clean_text(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "plain" },
		{ "a\nb\tc\x1b[31m\x7f", "a?b c?[31m?" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7" },
		{ "\xff|\xc3|\xe2\x82|", "?|?|??|" },
		{ "\xc2\x9b"
		  "31m",
		  "?31m" },                     /* CSI as a C1 control */
		{ "\xc0\xaf", "??" },           /* overlong '/' */
		{ "\xed\xa0\x80", "???" },      /* a surrogate */
		{ "\xf4\x90\x80\x80", "????" }, /* beyond U+10FFFF */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };

		err_set(&err, ERR_USAGE, "%s", cases[i].in);
		assert_string_equal(err.text, cases[i].out);
		assert_true(text_is_utf8(err.text, strlen(err.text)));
	}
}

static void test_cut_between_characters(void **state)
{
	struct err err = { 0 };
	char text[2 * ERR_TEXT_BYTES];
	size_t len = 0;

	(void)state;
	while (len + 3 < sizeof(text)) {
		memcpy(text + len, "\xe2\x82\xac", 3);
		len += 3;
	}
	text[len] = '\0';
	err_set(&err, ERR_USAGE, "x%s", text);
	assert_null(strchr(err.text, '?'));
	err_wrap(&err, "ab");
	assert_null(strchr(err.text, '?'));
	assert_true(strlen(err.text) > ERR_TEXT_BYTES - 4);
}

static void test_codes(void **state)
{
	static const struct {
		enum err_code code;
		const char *name;
		int status;
	} cases[] = {
		{ ERR_NONE, "none", 0 },
		{ ERR_USAGE, "usage", 2 },
		{ ERR_NOT_FOUND, "not_found", 3 },
		{ ERR_LOCKED, "locked", 4 },
		{ ERR_DAEMON, "daemon", 5 },
		{ ERR_REFUSED, "refused", 6 },
		{ ERR_SCHEDULER, "scheduler", 7 },
		{ ERR_TIMEOUT, "timeout", 8 },
		{ ERR_IO, "io", 9 },
		{ ERR_INTERNAL, "internal", 9 },
	};

	(void)state;
	assert_int_equal(COUNT(cases), ERR_COUNT);
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_string_equal(err_code_name(cases[i].code), cases[i].name);
		assert_int_equal(err_code_from_name(cases[i].name), cases[i].code);
		assert_int_equal(err_exit_status(cases[i].code), cases[i].status);
	}
	assert_int_equal(err_code_from_name("nonsense"), ERR_INTERNAL);
	assert_int_equal(err_code_from_name(NULL), ERR_INTERNAL);
	assert_string_equal(err_code_name((enum err_code)99), "internal");
}

static void test_passing(void **state)
{
	/* an administrator mounts read-only and back; Lustre's, NFS's and FUSE's words for "away" */
	static const int waits[] = { EROFS, ESHUTDOWN, ESTALE, ETIMEDOUT, ENOTCONN };
	struct err full = { 0 }, gone = { 0 }, said = { 0 };

	(void)state;
	errno = ENOSPC;
	err_errno(&full, "/a");
	errno = ENOENT;
	err_errno(&gone, "/a");
	errno = ENOSPC;
	err_set(&said, ERR_IO, "words only");
	err_wrap(&full, "job");
	assert_true(err_is_passing(&full));
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct err away = { 0 };

		errno = waits[i];
		err_errno(&away, "/a");
		assert_true(err_is_passing(&away));
	}
	assert_false(err_is_passing(&gone));
	assert_false(err_is_passing(&said));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_wins),   cmocka_unit_test(test_path_once),
		cmocka_unit_test(test_null_is_fine), cmocka_unit_test(test_own_text_as_argument),
		cmocka_unit_test(test_errno),        cmocka_unit_test(test_clean_text),
		cmocka_unit_test(test_codes),        cmocka_unit_test(test_cut_between_characters),
		cmocka_unit_test(test_passing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
