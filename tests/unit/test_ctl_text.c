/* SPDX-License-Identifier: MIT */
/* test_ctl_text.c - clean text, numbers, bars, sparklines, tables, what of a log is
 * trouble. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/look/log_lines.h"

static void assert_cleaned(const char *text, unsigned how, const char *want)
{
	char *copy = xstrdup(text);

	clean(copy, how);
	assert_string_equal(copy, want);
	free(copy);
}

static void test_clean(void **state)
{
	(void)state;
	assert_cleaned("plain text", CLEAN_LINE, "plain text");
	assert_cleaned("\x1b[31mred\x1b[0m", CLEAN_LINE, "red");
	assert_cleaned("\x1b]0;title\a!", CLEAN_LINE, "!");
	assert_cleaned("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", CLEAN_LINE, "link");
	assert_cleaned("\x1bP1;2q~~\x1b\\x", CLEAN_LINE, "x");
	assert_cleaned("\x1b]never ends", CLEAN_LINE, "");
	assert_cleaned("\x1b[31", CLEAN_LINE, "");
	assert_cleaned("\x1b", CLEAN_LINE, "");
	assert_cleaned("\x1b\x1b[2Jx", CLEAN_LINE, "x");
	assert_cleaned("a\nb\rc\bd\x7f", CLEAN_LINE, "a?b?c?d?");
	assert_cleaned("a\tb", CLEAN_LINE, "a?b");
	assert_cleaned("a\tb", CLEAN_KEEP_TABS, "a\tb");
	assert_cleaned("\xc2\x9b"
		       "31m",
		       CLEAN_LINE, "?31m"); /* C1 CSI */
	assert_cleaned("\xff\xc3(", CLEAN_LINE,
		       "?"
		       "?(");
	assert_cleaned("x\xe2\x80\xaey", CLEAN_LINE, "x?y"); /* right-to-left override */
	assert_cleaned("\xc3\xa4\xe2\x82\xac", CLEAN_LINE, "\xc3\xa4\xe2\x82\xac");
	assert_cleaned("\xc3\xa4\xe2\x82\xac", CLEAN_ASCII, "??");
}

/* Whatever the bytes: nothing that a terminal obeys is left. */
static void test_clean_any_bytes(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[24];

		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			static const char some[] = "\x1b[]\\P;1m\a\xc2\x9b\xe2\x80\xae\x7f\n a";

			seed = seed * 1103515245 + 12345;
			text[i] = some[(seed >> 16) % (sizeof(some) - 1)];
		}
		text[sizeof(text) - 1] = '\0';
		clean(text, CLEAN_LINE);
		for (const char *c = text; *c; c++)
			assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		assert_null(strstr(text, "\xc2\x9b"));
		assert_null(strstr(text, "\xe2\x80\xae"));
	}
}

static void test_columns(void **state)
{
	(void)state;
	assert_int_equal(columns_of("abc"), 3);
	assert_int_equal(columns_of("\xc3\xa4\xc3\xb6"), 2);
	assert_int_equal(columns_of("\xe6\xbc\xa2"), 2);
	assert_int_equal(bytes_within("\xc3\xa4\xc3\xb6x", 2), 4);
	assert_int_equal(bytes_within("\xe6\xbc\xa2x", 1), 0);
	assert_int_equal(bytes_within("abc", 0), 0);
	assert_int_equal(bytes_within("abc", 9), 3);
}

static void test_numbers(void **state)
{
	static const struct {
		double value;
		const char *text;
	} shorts[] = {
		{0, "0"}, {7, "7"}, {0.25, "0.2"}, {950, "950"}, {999.6, "1.0k"}, {5400, "5.4k"},
		{12345, "12k"}, {123456, "123k"}, {1.5e6, "1.5M"}, {-5400, "-5.4k"}, {NAN, "-"},
		{INFINITY, "-"},
	}, losses[] = {
		{2.31, "2.3100"}, {10.5, "10.50"}, {0, "0.0000"}, {1e-6, "1.000e-06"}, {NAN, "-"},
		{-INFINITY, "-"}, {123456, "1.235e+05"},
	};
	char text[2 * NUMBER_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
		assert_string_equal(short_number(shorts[i].value, text), shorts[i].text);
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		assert_string_equal(loss_text(losses[i].value, text), losses[i].text);
	assert_string_equal(step_text(-1, 5, text), "-");
	assert_string_equal(step_text(3, -1, text), "3");
	assert_string_equal(step_text(0, 5, text), "0/5");
}

static void assert_taken(char *text, const char *want)
{
	assert_string_equal(text, want);
	free(text);
}

static void test_bar(void **state)
{
	(void)state;
	assert_taken(bar(0, 6, false), "[....]");
	assert_taken(bar(0.5, 6, false), "[##..]");
	assert_taken(bar(7, 6, false), "[####]");
	assert_taken(bar(NAN, 6, false), "[....]");
	assert_taken(bar(0.5, 2, false), "");
	assert_taken(bar(0.5, -3, true), "");
	assert_taken(bar(0.5, 4, true), "██░░");
	assert_taken(bar(0.625, 4, true), "██▌░");
	assert_taken(bar(1, 2, true), "██");
}

static void test_sparkline(void **state)
{
	static const double falling[] = { 8, 7, 6, 5, 4, 3, 2, 1 };
	static const double same[] = { 2, 2, 2 };
	static const double holes[] = { NAN, 1, INFINITY, 2, NAN };
	static const double huge[] = { -1.7e308, 1.7e308 };
	double many[1000];

	(void)state;
	for (int i = 0; i < 1000; i++)
		many[i] = i;
	assert_taken(sparkline(falling, 8, 8, true), "█▇▆▅▄▃▂▁");
	assert_taken(sparkline(falling, 8, 8, false), "#*+=~-._");
	assert_taken(sparkline(falling, 8, 2, false), "#_");
	assert_taken(sparkline(same, 3, 8, false), "___");
	assert_taken(sparkline(holes, 5, 8, false), "_#");
	assert_taken(sparkline(huge, 2, 8, false), "_#");
	assert_taken(sparkline(many, 1000, 4, false), "_-+#");
	assert_taken(sparkline(NULL, 0, 8, true), "");
	assert_taken(sparkline(falling, 8, 0, true), "");
}

enum { NAME, STATE, TEXT, COLUMNS };
static const struct column columns[COLUMNS] = {
	[NAME] = { .title = "NAME", .least = 6 },
	[STATE] = { .title = "STATE", .rank = 1 },
	[TEXT] = { .title = "N", .rank = 2, .right = true },
};

static void fill(struct table *table)
{
	static const char *const texts[][COLUMNS] = {
		{ "brisk-otter-39", "running", "7" },
		{ "x", "failed", "1234" },
	};

	table_init(table, columns, COLUMNS);
	for (size_t r = 0; r < 2; r++) {
		struct cell *row = table_row(table);

		for (int c = 0; c < COLUMNS; c++)
			row[c].text = xstrdup(texts[r][c]);
	}
}

static void test_fit(void **state)
{
	static const struct {
		int width, want[COLUMNS];
	} cases[] = {
		{ 0, { 14, 7, 4 } }, /* no limit */
		{ 80, { 14, 7, 4 } },
		{ 29, { 14, 7, 4 } }, /* just fits */
		{ 28, { 13, 7, 4 } }, /* cut first … */
		/* … then drop, and give back what was cut */
		{ 21, { 6, 7, 4 } },
		{ 20, { 11, 7, -1 } },
		{ 15, { 6, 7, -1 } },
		{ 14, { 14, -1, -1 } },
		{ 7, { 7, -1, -1 } },
		{ 3, { 3, -1, -1 } },
	};
	struct table table;
	int widths[COLUMNS];

	(void)state;
	fill(&table);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		table_fit(&table, cases[i].width, widths);
		for (int c = 0; c < COLUMNS; c++)
			assert_int_equal(widths[c], cases[i].want[c]);
	}
	table_fini(&table);
}

static void assert_printed(int width, const char *want)
{
	struct style style = { .width = width };
	struct table table;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	fill(&table);
	table_print(&table, &style, to);
	fclose(to);
	assert_string_equal(text, want);
	free(text);
	table_fini(&table);
}

static void test_print(void **state)
{
	(void)state;
	assert_printed(0, "NAME            STATE       N\n"
			  "brisk-otter-39  running     7\n"
			  "x               failed   1234\n");
	assert_printed(20, "NAME         STATE\n"
			   "brisk-otte~  running\n"
			   "x            failed\n");
}

static void test_sizes(void **state)
{
	static const struct {
		int64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ -1, "0" },
		{ 512, "512 B" },
		{ 4096, "4.0 KiB" },
		{ 1 << 20, "1.0 MiB" },
		{ INT64_C(999) << 30, "999 GiB" },
		{ INT64_C(3) << 40, "3.0 TiB" },
	};
	char text[NUMBER_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(size_text(cases[i].bytes, text), cases[i].text);
}

static void keep_line(void *arg, const char *text, size_t len)
{
	buf_add(arg, text, len);
	buf_add(arg, "\n", 1);
}

/* Lines that begin with "+" are trouble. */
static void test_errors(void **state)
{
	static const char *const lines[] = {
		"[n1:0] loading",
		"+[n1:0] Traceback (most recent call last):",
		"+[n1:1] [rank1]: Traceback (most recent call last):",
		"[n1:2] step 7/9",
		"+[n1:0]   File \"x.py\", line 1",
		"+[n1:1] [rank1]:   File \"y.py\", line 2",
		"+[n1:0] KeyboardInterrupt",
		"[n1:0] step 8/9",
		"+[n1:1] [rank1]:     stop()",
		"+[n1:1] [rank1]: StopIteration",
		"[n1:1] [rank1]:   and so on",
		"[n1:0] lbrun: launch 1 ended: completed: exit status 0",
		"+[n1:0] lbrun: launch 2 ended: launch_fail: cannot start python",
		"+[n1:0] lbrun: launch 3 ended: hang: no step for 30m",
	};
	struct log_lines l = { .on_line = keep_line };
	struct buf got, want;
	struct err err = { 0 };

	(void)state;
	buf_init(&got, 4096);
	buf_init(&want, 4096);
	l.arg = &got;
	assert_int_equal(log_lines_init(&l, NULL, true, 0, &err), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		bool is_trouble = lines[i][0] == '+';

		if (is_trouble)
			buf_addf(&want, "%s\n", lines[i] + 1);
		log_lines_add(&l, lines[i] + is_trouble, strlen(lines[i] + is_trouble));
		log_lines_add(&l, "\n", 1);
	}
	buf_add(&got, "", 1);
	buf_add(&want, "", 1);
	assert_string_equal(got.data, want.data);
	log_lines_fini(&l);
	buf_fini(&got);
	buf_fini(&want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),           cmocka_unit_test(test_clean),
		cmocka_unit_test(test_clean_any_bytes), cmocka_unit_test(test_columns),
		cmocka_unit_test(test_numbers),         cmocka_unit_test(test_bar),
		cmocka_unit_test(test_sparkline),       cmocka_unit_test(test_fit),
		cmocka_unit_test(test_print),           cmocka_unit_test(test_errors),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
