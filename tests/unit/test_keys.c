/* SPDX-License-Identifier: MIT */
/* test_keys.c - tables of keys: reading, checking, printing. */
#include "tests/unit/unit.h"

#include "common/config/keys.h"

struct config {
	bool flag;
	int64_t n, any, pause_ms;
	double real;
	char *text, *other;
	int choice;
	struct key_strings list;
	struct key_ints codes;
};

#define KEYS_OF struct config

static const struct key table[] = {
	KEY_FLAG("one", "flag", flag, "true", ""),
	KEY_INT("one", "n", n, 1, 10, "3", ""),
	KEY_ROW("one", "any", KEY_INT, any, .help = ""),
	KEY_DURATION("one", "pause", pause_ms, 1000, 3600e3, "60s", ""),
	KEY_REAL("two.deep", "real", real, 0, 1, "0.5", ""),
	KEY_TEXT("two.deep", "text", text, "\"quoted\"", ""),
	KEY_TEXT("two.deep", "other", other, NULL, ""),
	KEY_CHOICE("two", "choice", choice, "red|green|blue", "green", ""),
	KEY_LIST("two", "list", list, "[\"a\"]", ""),
	KEY_NUMBERS("two", "codes", codes, 1, 255, NULL, ""),
};

static int read_text(const char *text, struct config *out, struct err *err)
{
	struct toml toml;
	int rc;

	*out = (struct config){ 0 };
	assert_int_equal(toml_parse(&toml, text, strlen(text), "f.toml", err), 0);
	rc = keys_unknown(table, COUNT(table), &toml, NULL, err);
	if (rc == 0)
		rc = keys_read(table, COUNT(table), &toml, out, err);
	toml_clear(&toml);
	return rc;
}

static void test_fallbacks(void **state)
{
	struct config c;

	(void)state;
	assert_int_equal(read_text("", &c, NULL), 0);
	assert_true(c.flag);
	assert_int_equal(c.n, 3);
	assert_int_equal(c.any, 0);
	assert_int_equal(c.pause_ms, 60000);
	assert_true(c.real == 0.5);
	assert_string_equal(c.text, "quoted");
	assert_null(c.other);
	assert_int_equal(c.choice, 1);
	assert_int_equal(c.list.count, 1);
	assert_string_equal(c.list.items[0], "a");
	assert_null(c.list.items[1]);
	keys_clear(table, COUNT(table), &c);
	assert_null(c.text);
	assert_null(c.list.items);
}

static void test_values(void **state)
{
	struct config c;

	(void)state;
	assert_int_equal(read_text("[one]\nflag=false\nn=10\nany=-9\npause=1.5\n"
				   "[two]\nchoice='blue'\nlist=[]\ncodes=[1,255]\n"
				   "[two.deep]\nreal=1\ntext='new'\nother=7\n",
				   &c, NULL),
			 0);
	assert_false(c.flag);
	assert_int_equal(c.n, 10);
	assert_int_equal(c.any, -9);
	assert_int_equal(c.pause_ms, 1500);
	assert_true(c.real == 1.0);
	assert_string_equal(c.text, "new");
	assert_string_equal(c.other, "7");
	assert_int_equal(c.choice, 2);
	assert_int_equal(c.list.count, 0);
	assert_non_null(c.list.items);
	assert_int_equal(c.codes.count, 2);
	assert_int_equal(c.codes.items[1], 255);
	keys_clear(table, COUNT(table), &c);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "[one]\nfalg=true", "f.toml:2: one.falg: unknown key; did you mean \"flag\"?" },
		{ "[one]\nxyzzy=1", "f.toml:2: one.xyzzy: unknown key in section [one]" },
		{ "[oen]\nn=1", "f.toml:1: oen: unknown section; did you mean [one]?" },
		{ "[zzzzzz]", "f.toml:1: zzzzzz: unknown section" },
		{ "[two.depe]", "f.toml:1: two.depe: unknown section; did you mean [two.deep]?" },
		{ "n=1", "f.toml:1: n: unknown key; it belongs into a section" },
		{ "one=1", "f.toml:1: one: must be a section" },
		{ "[two]\ndeep=1", "f.toml:2: two.deep: must be a section" },
		{ "[one]\nflag=1", "f.toml:2: one.flag: must be true or false" },
		{ "[one]\nn=11", "f.toml:2: one.n: must be an integer from 1 to 10" },
		{ "[one]\nn=0", "f.toml:2: one.n: must be an integer from 1 to 10" },
		{ "[one]\nn=1.0", "f.toml:2: one.n: must be an integer from 1 to 10" },
		{ "[one]\nany='x'", "f.toml:2: one.any: must be an integer" },
		{ "[one]\npause='soon'", "f.toml:2: one.pause: must be a number of seconds or a "
					 "duration like \"90s\", \"5m\", \"1h30m\"" },
		{ "[one]\npause='2h'", "f.toml:2: one.pause: must be a duration from 1s to 1h" },
		{ "[one]\npause=-5", "f.toml:2: one.pause: must be a number of seconds or a "
				     "duration like \"90s\", \"5m\", \"1h30m\"" },
		{ "[two.deep]\nreal=2", "f.toml:2: two.deep.real: must be a number from 0 to 1" },
		{ "[two.deep]\ntext=true", "f.toml:2: two.deep.text: must be a string in quotes" },
		{ "[two]\nchoice='pink'",
		  "f.toml:2: two.choice: must be one of \"red\", \"green\", \"blue\"" },
		{ "[two]\nchoice='re'",
		  "f.toml:2: two.choice: must be one of \"red\", \"green\", \"blue\"" },
		{ "[two]\nlist='a'",
		  "f.toml:2: two.list: must be a list of strings, like [\"a\", \"b\"]" },
		{ "[two]\nlist=['a', 1]",
		  "f.toml:2: two.list: must be a list of strings, like [\"a\", \"b\"]" },
		{ "[two]\ncodes=[0]",
		  "f.toml:2: two.codes: must be a list of integers, each from 1 to 255" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		struct config c;

		assert_int_equal(read_text(cases[i].text, &c, &err), -1);
		assert_string_equal(err.text, cases[i].message);
		assert_int_equal(err.code, ERR_USAGE);
		assert_null(c.text); /* nothing to clear after a failure */
	}
}

static void test_set_and_ignored(void **state)
{
	static const char *const ignored[] = { "mine", NULL };
	struct err err = { 0 };
	struct config c = { 0 };
	struct toml toml;

	(void)state;
	assert_int_equal(toml_parse(&toml, "[mine]\nx=1\n[one]\nn=1", 20, "f", NULL), 0);
	assert_int_equal(keys_unknown(table, COUNT(table), &toml, ignored, &err), 0);
	assert_int_equal(keys_unknown(table, COUNT(table), &toml, NULL, &err), -1);
	err_clear(&err);
	assert_int_equal(toml_set(&toml, "one.n=99", NULL), 0);
	assert_int_equal(keys_read(table, COUNT(table), &toml, &c, &err), -1);
	assert_string_equal(err.text, "--set: one.n: must be an integer from 1 to 10");
	err_clear(&err);
	toml.option = "--";
	assert_int_equal(keys_refuse(&toml, "one.n", "no", &err), -1);
	assert_string_equal(err.text, "--one.n: no");
	err_clear(&err);
	keys_refuse(&toml, "one.other", "is missing", &err);
	assert_string_equal(err.text, "f: one.other: is missing");
	err_clear(&err);
	assert_int_equal(toml_set(&toml, "three.n=1", NULL), 0);
	assert_int_equal(keys_unknown(table, COUNT(table), &toml, ignored, &err), -1);
	assert_string_equal(err.text, "--three: unknown section");
	toml_clear(&toml);
}

static void test_print_reads_back(void **state)
{
	struct config a, b;
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(
		read_text("[one]\npause='59m59s'\n[two]\nchoice='red'\ncodes=[3]\n", &a, NULL), 0);
	keys_print(table, COUNT(table), &a, to);
	fclose(to);
	assert_contains(text, "[two.deep]");
	assert_contains(text, "pause = \"59m59s\"");
	assert_int_equal(read_text(text, &b, NULL), 0);
	assert_int_equal(b.pause_ms, 3599000);
	assert_int_equal(b.choice, 0);
	assert_int_equal(b.codes.items[0], 3);
	assert_string_equal(b.text, "quoted");
	free(text);
	keys_clear(table, COUNT(table), &a);
	keys_clear(table, COUNT(table), &b);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: refused */
	} cases[] = {
		{ "90", 90000 },     { "90s", 90000 }, { "1.5h", 5400000 }, { "1h30m", 5400000 },
		{ "2d", 172800000 }, { "250ms", 250 }, { "0", 0 },          { "1m1ms", 60001 },
		{ "0.5", 500 },      { "", -1 },       { "s", -1 },         { "30m1h", -1 },
		{ "1h1h", -1 },      { "-5s", -1 },    { "5 s", -1 },       { "5x", -1 },
		{ "1h30", -1 },      { "1.s", -1 },    { "1e3", -1 },       { "99999999d", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		int64_t ms;
		int rc = duration_parse(cases[i].text, &ms, &err);

		if (rc != (cases[i].ms < 0 ? -1 : 0) || (rc == 0 && ms != cases[i].ms))
			fail_msg("%s: %lld", cases[i].text, (long long)ms);
	}
}

static void test_nearest(void **state)
{
	static const char *const verbs[] = { "submit", "status", "kill", "ls", "logs", "restart" };
	static const struct {
		const char *word, *guess;
	} cases[] = {
		{ "sumbit", "submit" },   { "stat", "status" },
		{ "KILL", "kill" },       { "kil", "kill" },
		{ "retsart", "restart" }, { "l", "ls" },
		{ "frobnicate", NULL },   { "", NULL },
	};
	char huge[500];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *guess = nearest(cases[i].word, verbs, COUNT(verbs));

		if (!cases[i].guess)
			assert_null(guess);
		else
			assert_string_equal(guess ? guess : "none", cases[i].guess);
	}
	assert_null(nearest("kill", verbs + 2, 1)); /* a word is no guess at itself */
	memset(huge, 'k', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	assert_null(nearest(huge, verbs, COUNT(verbs)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fallbacks), cmocka_unit_test(test_values),
		cmocka_unit_test(test_mistakes),  cmocka_unit_test(test_set_and_ignored),
		cmocka_unit_test(test_durations), cmocka_unit_test(test_print_reads_back),
		cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
