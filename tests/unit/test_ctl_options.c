/* SPDX-License-Identifier: MIT */
/* test_ctl_options.c - the command line: options anywhere, "--" ends them, every mistake gets one
 * helpful line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "ctl/base/command.h"
#include "ctl/commands.h"

enum { MAX_WORDS = 12 };

static const struct option_row rows[] = {
	{ "name", 'n', OPTION_TEXT, offsetof(struct options, name), "NAME", "" },
	{ "follow", 'f', OPTION_FLAG, offsetof(struct options, follow), NULL, "" },
	{ "all", 'a', OPTION_FLAG, offsetof(struct options, all), NULL, "" },
	{ "set", 0, OPTION_SET, offsetof(struct options, set), "KEY=VALUE", "" },
	{ "attempt", 0, OPTION_NUMBER, offsetof(struct options, attempt), "N", "" },
	{ "timeout", 0, OPTION_DURATION, offsetof(struct options, timeout_ms), "DURATION", "" },
	{ 0 },
};
static const struct option_row *const tables[] = { rows, global_options, NULL };

struct parsed {
	struct options options;
	struct operands operands;
	struct err err;
	int rc;
};

/* `words` ends with NULL. */
static struct parsed parse(char *const *words, bool stop)
{
	struct parsed p = { 0 };
	int argc = 0;

	while (words[argc])
		argc++;
	options_init(&p.options, &p.operands);
	p.rc = options_read(tables, argc, words, stop, &p.options, &p.operands, &p.err);
	return p;
}

#define WORDS(...) ((char *[MAX_WORDS]){ __VA_ARGS__ })

static char w_follow[] = "--follow", w_fa[] = "-fa", w_x[] = "x", w_y[] = "y", w_dd[] = "--",
	    w_name[] = "--name", w_name_v[] = "--name=v=1", w_nz[] = "-nz", w_set[] = "--set",
	    w_a1[] = "a.b=1", w_a2[] = "a.c=-2", w_dash[] = "-", w_empty[] = "";

static void test_anywhere(void **state)
{
	struct parsed p = parse(WORDS(w_x, w_follow, w_y, w_name_v), false);

	(void)state;
	assert_int_equal(p.rc, 4);
	assert_true(p.options.follow);
	assert_false(p.options.all);
	assert_string_equal(p.options.name, "v=1");
	assert_int_equal(p.operands.count, 2);
	assert_string_equal(p.operands.words[1], "y");
	options_fini(&p.options, &p.operands);
}

static void test_letters(void **state)
{
	struct parsed p = parse(WORDS(w_fa, w_nz, w_dash, w_empty), false);

	(void)state;
	assert_true(p.options.follow && p.options.all);
	assert_string_equal(p.options.name, "z");
	assert_int_equal(p.operands.count, 2);
	assert_string_equal(p.operands.words[0], "-");
	assert_string_equal(p.operands.words[1], "");
	options_fini(&p.options, &p.operands);
}

static void test_dashes_end_options(void **state)
{
	struct parsed p = parse(WORDS(w_x, w_dd, w_follow, w_dd, w_empty, w_nz), false);

	(void)state;
	assert_false(p.options.follow);
	assert_true(p.operands.dashes);
	assert_int_equal(p.operands.count, 1);
	assert_int_equal(p.operands.rest_count, 4);
	assert_string_equal(p.operands.rest[0], "--follow");
	assert_string_equal(p.operands.rest[1], "--");
	assert_string_equal(p.operands.rest[2], "");
	assert_string_equal(p.operands.rest[3], "-nz");
	assert_null(p.operands.rest[4]);
	options_fini(&p.options, &p.operands);
}

static void test_value_is_the_next_word_whatever_it_is(void **state)
{
	struct parsed p = parse(WORDS(w_name, w_follow, w_set, w_a1, w_set, w_a2), false);

	(void)state;
	assert_string_equal(p.options.name, "--follow");
	assert_false(p.options.follow);
	assert_int_equal(p.options.set_count, 2);
	assert_string_equal(p.options.set[1], "a.c=-2");
	options_fini(&p.options, &p.operands);
}

static void test_stop_at_word(void **state)
{
	struct parsed p = parse(WORDS(w_follow, w_x, w_fa), true);

	(void)state;
	assert_int_equal(p.rc, 1);
	assert_false(p.options.all);
	options_fini(&p.options, &p.operands);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "--folow", "unknown option --folow; did you mean --follow?" },
		{ "--qqqqqqqq", "unknown option --qqqqqqqq" },
		{ "--group", "unknown option --group; did you mean --set run.group=VALUE?" },
		{ "--env-file=x", "unknown option --env-file; did you mean --set run.env_file=" },
		{ "-q", "unknown option -q" },
		{ "--follow=1", "--follow takes no value" },
		{ "--name", "--name needs a value: --name NAME" },
		{ "-n", "--name needs a value: --name NAME" },
		{ "--attempt=0", "--attempt: \"0\" is no number from 1 to 2147483647" },
		{ "--attempt=-1", "--attempt: \"-1\" is no number from 1 to 2147483647" },
		{ "--attempt=1x", "--attempt: \"1x\" is no number from 1 to 2147483647" },
		{ "--attempt=99999999999999999999",
		  "--attempt: \"99999999999999999999\" is no number from 1 to 2147483647" },
		{ "--attempt=", "--attempt: \"\" is no number from 1 to 2147483647" },
		{ "--timeout=soon", "--timeout: " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char word[64];
		struct parsed p;

		snprintf(word, sizeof(word), "%s", cases[i].word);
		p = parse(WORDS(word), false);
		assert_int_equal(p.rc, -1);
		assert_int_equal(p.err.code, ERR_USAGE);
		if (strncmp(p.err.text, cases[i].text, strlen(cases[i].text)) != 0)
			assert_string_equal(p.err.text, cases[i].text);
		options_fini(&p.options, &p.operands);
	}
}

/* What sbatch would take for an argument of the script. */
static void test_behind_a_script(void **state)
{
	static const struct option_row sbatch[] = { { "sbatch", 0, OPTION_OTHERS, 0, NULL, "" },
						    { 0 } };
	static const struct option_row *const with[] = { sbatch, rows, NULL };
	static char script[] = "train.slurm";
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "--lr", "unknown option --lr; arguments of a script stand behind --" },
		{ "-7", "unknown option -7; arguments of a script stand behind --" },
		{ "--partitoin",
		  "unknown option --partitoin; did you mean --partition?; arguments of a script stand behind --" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed p = { 0 };
		char word[64], *words[] = { script, word };

		snprintf(word, sizeof(word), "%s", cases[i].word);
		options_init(&p.options, &p.operands);
		assert_int_equal(
			options_read(with, 2, words, false, &p.options, &p.operands, &p.err), -1);
		assert_string_equal(p.err.text, cases[i].text);
		options_fini(&p.options, &p.operands);
	}
}

static void test_values(void **state)
{
	static char attempt[] = "--attempt=7", timeout[] = "--timeout=1h30m";
	struct parsed p = parse(WORDS(attempt, timeout), false);

	(void)state;
	assert_int_equal(p.options.attempt, 7);
	assert_int_equal(p.options.timeout_ms, 5400000);
	options_fini(&p.options, &p.operands);
}

/* The table itself: a row that lacks something would show as a hole in the help. */
static void test_every_command_is_complete(void **state)
{
	(void)state;
	assert_true(command_count > 0);
	for (size_t i = 0; i < command_count; i++) {
		const struct command *c = &commands[i];

		assert_true(c->name[0] && c->summary[0] && c->options && c->run);
		assert_true(strncmp(c->examples, "lbctl ", 6) == 0);
		assert_true(c->examples[strlen(c->examples) - 1] == '\n');
		assert_true(c->least <= c->most);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(c->name, commands[j].name);
		for (const struct option_row *row = c->options; row->name; row++) {
			assert_true(row->help[0] != '\0');
			assert_true((row->kind == OPTION_FLAG) == (row->value == NULL));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anywhere),
		cmocka_unit_test(test_letters),
		cmocka_unit_test(test_dashes_end_options),
		cmocka_unit_test(test_value_is_the_next_word_whatever_it_is),
		cmocka_unit_test(test_stop_at_word),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_behind_a_script),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_every_command_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
