/* SPDX-License-Identifier: MIT */
/* test_log.c - lines of the log, for a person and for journald. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/log.h"

/* What log_error and friends wrote to stderr while it led to a file. */
static char *logged(bool as_journal, enum log_level level, const char *text)
{
	int saved = dup(STDERR_FILENO);
	int fd = open("log", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char stream[64];
	struct stat st;

	dup2(fd, STDERR_FILENO);
	fstat(fd, &st);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
		 (uintmax_t)st.st_ino + !as_journal);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init("lbtest", level);
	errno = EBUSY;
	log_error("%s", text);
	log_debug("quiet");
	assert_int_equal(errno, EBUSY);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	return file_read("log", 100000, NULL, NULL);
}

static void test_plain(void **state)
{
	char *text = logged(false, LOG_LEVEL_INFO, "one\ntwo \x1b[0m");

	(void)state;
	/* 2026-11-20T14:03:22.123Z error lbtest: … */
	assert_int_equal(text[4], '-');
	assert_int_equal(text[10], 'T');
	assert_int_equal(text[23], 'Z');
	assert_string_equal(text + 24, " error lbtest: one?two ?[0m\n");
	free(text);
}

static void test_journal(void **state)
{
	char *text = logged(true, LOG_LEVEL_DEBUG, "x");

	(void)state;
	assert_string_equal(text, "<3>lbtest: x\n<7>lbtest: quiet\n");
	free(text);
}

static void test_long_line_is_cut(void **state)
{
	static char big[9000];
	char *text;

	(void)state;
	memset(big, 'a', sizeof(big) - 1);
	text = logged(true, LOG_LEVEL_ERROR, big);
	assert_true(strlen(text) > 1000 && strlen(text) < 4096);
	assert_int_equal(text[strlen(text) - 1], '\n');
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_journal),
		cmocka_unit_test(test_long_line_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
