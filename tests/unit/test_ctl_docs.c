/* SPDX-License-Identifier: MIT */
/* test_ctl_docs.c - every command and option of the table is in the man page and in the
 * completions, every kind of event in the one of lbd.toml, and what prints JSON in the protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "ctl/base/command.h"
#include "ctl/commands.h"
#include "tests/unit/source.h"

enum { FILE_MAX_BYTES = 256 * 1024 };

struct document {
	const char *path;
	const char *before; /* what stands before an option's name */
};

static const struct document documents[] = {
	{ "docs/man/lbctl.1.scd", "--" },
	{ "etc/completions/lbctl.bash", "--" },
	{ "etc/completions/_lbctl", "--" },
	{ "etc/completions/lbctl.fish", "-l " },
};
enum { DOCUMENTS = sizeof(documents) / sizeof(documents[0]) };

static bool is_part_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* Whether `before` directly followed by the whole word `name` is in the text. */
static bool says(const char *text, const char *before, const char *name)
{
	char wanted[64];
	size_t len;

	snprintf(wanted, sizeof(wanted), "%s%s", before, name);
	len = strlen(wanted);
	for (const char *at = strstr(text, wanted); at; at = strstr(at + 1, wanted)) {
		if ((at == text || !is_part_of_word(at[-1])) && !is_part_of_word(at[len]))
			return true;
	}
	return false;
}

static void check_options(const struct document *d, const char *text, const struct option_row *rows)
{
	for (const struct option_row *row = rows; row->name; row++) {
		const char letter[] = { row->letter, '*', '\0' };

		if (row->kind != OPTION_OTHERS && !says(text, d->before, row->name))
			fail_msg("%s does not know --%s", d->path, row->name);
		if (row->letter && d == &documents[0] && !says(text, "*-", letter))
			fail_msg("%s does not know -%c", d->path, row->letter);
	}
}

static void test_documents(void **state)
{
	(void)state;
	for (size_t i = 0; i < DOCUMENTS; i++) {
		const struct document *d = &documents[i];
		struct err err = { 0 };
		char *text = file_read(source_path(d->path), FILE_MAX_BYTES, NULL, &err);

		if (!text)
			fail_msg("%s", err.text);
		check_options(d, text, global_options);
		for (size_t c = 0; c < command_count; c++) {
			if (!says(text, "", commands[c].name))
				fail_msg("%s does not know %s", d->path, commands[c].name);
			check_options(d, text, commands[c].options);
		}
		free(text);
	}
}

/* Section 3 of the protocol names whatever takes --json. */
static void test_json(void **state)
{
	struct err err = { 0 };
	char *text = file_read(source_path("docs/PROTOCOL.md"), FILE_MAX_BYTES, NULL, &err);
	char *section = text ? strstr(text, "\n## 3.") : NULL, *end;

	(void)state;
	assert_non_null(section);
	end = strstr(section + 1, "\n## ");
	assert_non_null(end);
	*end = '\0';
	for (size_t c = 0; c < command_count; c++) {
		const struct option_row *row = commands[c].options;

		while (row && row->name && strcmp(row->name, "json") != 0)
			row++;
		if (row && row->name && !says(section, "`", commands[c].name))
			fail_msg("the protocol does not tell what %s --json prints",
				 commands[c].name);
	}
	free(text);
}

/* The man page lists what notify.on may name, in paragraphs of words parted by commas. */
static void test_event_kinds(void **state)
{
	struct err err = { 0 };
	char *page = file_read(source_path("docs/man/lbd.toml.5.scd"), FILE_MAX_BYTES, NULL, &err);
	char *table = file_read(source_path("daemon/base/event_kinds.c"), FILE_MAX_BYTES, NULL,
				&err);
	char *at = table ? strstr(table, "} kinds[] = {") : NULL;
	char *end = at ? strstr(at, "\n};") : NULL;
	size_t count = 0;

	(void)state;
	if (end)
		*end = '\0';
	for (; page && at && (at = strstr(at, "{ \"")); count++) {
		at += strlen("{ \"");
		end = strchr(at, '"');
		*end = '\0';
		if (!says(page, "", at))
			fail_msg("lbd.toml(5) does not list the kind %s", at);
		at = end + 1;
	}
	assert_true(count > 50);
	free(table);
	free(page);
}

/* A word that hides a command of ours is worse than none. */
static void test_other_words(void **state)
{
	static const char *const expected[][2] = {
		{ "cancel", "kill" },  { "list", "ls" },       { "resume", "restart" },
		{ "htop", "top" },     { "ps", "ls" },         { "squeue", "ls" },
		{ "scancel", "kill" }, { "sbatch", "submit" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_string_equal(other_word(expected[i][0]), expected[i][1]);
	assert_null(other_word("frobnicate"));
	for (size_t c = 0; c < command_count; c++)
		assert_null(other_word(commands[c].name));
}

static void test_says(void **state)
{
	(void)state;
	assert_true(says("a --now b", "--", "now"));
	assert_true(says("--nower --now", "--", "now"));
	assert_false(says("--nower", "--", "now"));
	assert_false(says("x--now", "--", "now"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says),        cmocka_unit_test(test_other_words),
		cmocka_unit_test(test_documents),   cmocka_unit_test(test_json),
		cmocka_unit_test(test_event_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
