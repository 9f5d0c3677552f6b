/* SPDX-License-Identifier: MIT */
/* test_toml.c - TOML: values, places of mistakes, printing. */
#include "tests/unit/unit.h"

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/config/toml.h"
#include "tests/unit/source.h"

/* splitmix64: the same mutations everywhere. */
static uint64_t random_next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static char *tree_of(const struct toml *t)
{
	return js_line(t->root);
}

static void test_tree_and_lines(void **state)
{
	static const char text[] = "b = 1\n"
				   "a = 'x'\n"
				   "[z.y]\n"
				   "d = 1979-05-27T07:32:00Z\n"
				   "t = 07:32:00\n"
				   "f = 1.5\n"
				   "l = [1, [true], {x = 2}]\n"
				   "[[arr]]\n"
				   "k = 1\n";
	struct toml t;
	struct err err = { 0 };
	char *tree;

	(void)state;
	assert_int_equal(toml_parse(&t, text, sizeof(text) - 1, "f.toml", &err), 0);
	tree = tree_of(&t);
	assert_string_equal(tree,
			    "{\"b\":1,\"a\":\"x\",\"z\":{\"y\":{\"d\":\"1979-05-27T07:32:00Z\","
			    "\"t\":\"07:32:00\",\"f\":1.5,\"l\":[1,[true],{\"x\":2}]}},"
			    "\"arr\":[{\"k\":1}]}");
	free(tree);
	assert_int_equal(toml_line(&t, "b"), 1);
	assert_int_equal(toml_line(&t, "a"), 2);
	assert_int_equal(toml_line(&t, "z.y"), 3);
	assert_int_equal(toml_line(&t, "z.y.f"), 6);
	assert_int_equal(toml_line(&t, "z.y.l[2].x"), 7);
	assert_int_equal(toml_line(&t, "nope"), 0);
	toml_clear(&t);
	toml_clear(&t);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "a = 1\nb = \n", "f.toml:2: " },
		{ "a = 1\na = 2\n", "f.toml:2: " },
		{ "a = [1,\n", "f.toml:" },
		{ "\n\nx = \"\xff\"\n", "f.toml:3: not valid UTF-8" },
		{ "a = 1\n[\031ob]\n", "f.toml:2: a control character" },
		{ "a = 1 # \033[2J\n", "f.toml:1: a control character" },
		{ "a\177 = 1\n", "f.toml:1: a control character" },
		{ "\xc3\xa4 = 1\n", "f.toml:1: " },
		{ "a = 1\n\xef\xba\xbf\n", "f.toml:2: " },
		{ "a = 2\"x\xc3\x9f\"\n", "f.toml:1: " },
		{ "x = nan", "f.toml:1: x: inf and nan" },
		{ "[t]\nx = -inf", "f.toml:2: t.x: inf and nan" },
		{ "x = \"\\u0000\"", "must not contain NUL" },
		{ "x = 99999999999999999999", "is not representable in 64 bits" },
		{ "\ntime = 20h\n", "f.toml:2: " },
		{ "time = 20h", "; a text must be in quotes" },
		{ "time = 20:00", "; a text must be in quotes" },
		{ "partition = gpu", "; a text must be in quotes" },
		{ "nodelist = n1,n2", "; a text must be in quotes" },
		{ "name = two", "; a text must be in quotes" },
		{ "x = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
		  "nested deeper than 32" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		struct toml t;

		assert_int_equal(
			toml_parse(&t, cases[i].text, strlen(cases[i].text), "f.toml", &err), -1);
		assert_int_equal(err.code, ERR_USAGE);
		assert_contains(err.text, cases[i].part);
		assert_null(t.root);
	}
}

static void test_nul_and_size(void **state)
{
	size_t len = 1024 * 1024 + 1;
	char *big = malloc(len);
	struct err err = { 0 };
	struct toml t;

	(void)state;
	assert_int_equal(toml_parse(&t, "a=1\n\0b=2", 8, "f", &err), -1);
	assert_contains(err.text, "f:2: NUL byte");
	err_clear(&err);
	memset(big, '\n', len);
	assert_int_equal(toml_parse(&t, big, len, "f", &err), -1);
	assert_contains(err.text, "1 MiB");
	assert_int_equal(toml_parse(&t, big, len - 1, "f", NULL), 0);
	toml_clear(&t);
	/* A megabyte of one dotted key must not overflow the stack. */
	for (size_t i = 0; i < len; i++)
		big[i] = i % 2 ? '.' : 'a';
	err_clear(&err);
	assert_int_equal(toml_parse(&t, big, len - 4, "f", &err), -1);
	assert_contains(err.text, "nested deeper");
	big[0] = '[';
	assert_int_equal(toml_parse(&t, big, len - 4, "f", NULL), -1);
	free(big);
}

/* Dots in comments and strings are no nesting, and lines go on counting behind them. */
static void test_dots_elsewhere(void **state)
{
#define DOTS "........................................................................"
	static const char text[] = "# " DOTS "\na = \"" DOTS "\\\"" DOTS "\"\nb = '''\n" DOTS
				   "\n''" DOTS "'''\nc = \"\"\"" DOTS "\n\\\"\"\"" DOTS
				   "\"\"\" # x\nd = inf\n";
	struct err err = { 0 };
	struct toml t;

	(void)state;
	assert_int_equal(toml_parse(&t, text, sizeof(text) - 1, "f", &err), -1);
	assert_contains(err.text, "f:8: d: inf");
}

static void test_set(void **state)
{
	static const struct {
		const char *assignment, *tree; /* of a document with a = 1 and [s] k = 2 */
	} cases[] = {
		{ "a=2", "{\"a\":2,\"s\":{\"k\":2}}" },
		{ "s.k=true", "{\"a\":1,\"s\":{\"k\":true}}" },
		{ "s.k=1.5", "{\"a\":1,\"s\":{\"k\":1.5}}" },
		{ "s.k=\"7\"", "{\"a\":1,\"s\":{\"k\":\"7\"}}" },
		{ "s.k=20h", "{\"a\":1,\"s\":{\"k\":\"20h\"}}" },
		{ "s.k=", "{\"a\":1,\"s\":{\"k\":\"\"}}" },
		{ "s.k=a=b", "{\"a\":1,\"s\":{\"k\":\"a=b\"}}" },
		{ "s.k=[1, \"x\"]", "{\"a\":1,\"s\":{\"k\":[1,\"x\"]}}" },
		{ "s.k=1\nz = 2", "{\"a\":1,\"s\":{\"k\":\"1\\nz = 2\"}}" },
		{ "s={k = 3}", "{\"a\":1,\"s\":{\"k\":3}}" },
		{ "n.e.w=x y", "{\"a\":1,\"s\":{\"k\":2},\"n\":{\"e\":{\"w\":\"x y\"}}}" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };
		struct toml t;
		char *tree;

		assert_int_equal(toml_parse(&t, "a=1\n[s]\nk=2\n", 12, "f", &err), 0);
		assert_int_equal(toml_set(&t, cases[i].assignment, &err), 0);
		tree = tree_of(&t);
		assert_string_equal(tree, cases[i].tree);
		free(tree);
		if (cases[i].assignment[0] == 's')
			assert_true(toml_line(&t, "s.k") <= 0);
		toml_clear(&t);
	}
}

static void test_where(void **state)
{
	struct err err = { 0 };
	char where[TOML_WHERE_BYTES];
	struct toml t;

	(void)state;
	assert_int_equal(toml_parse(&t, "a=1\n[s]\nk=2\n", 12, "f", &err), 0);
	assert_string_equal(toml_where(&t, "s.k", where), "f:3: s.k");
	assert_string_equal(toml_where(&t, "s.z", where), "f: s.z");
	assert_int_equal(toml_set(&t, "s.k=3", &err), 0);
	assert_string_equal(toml_where(&t, "s.k", where), "--set: s.k");
	t.option = "--";
	assert_string_equal(toml_where(&t, "s.k", where), "--s.k");
	assert_int_equal(toml_set(&t, "new.k=3", &err), 0);
	assert_string_equal(toml_where(&t, "new", where), "--new");
	toml_clear(&t);
}

static void test_bad_set(void **state)
{
	static const char *const cases[] = { "",       "a",     "=1",    ".a=1",  "a.=1",
					     "a..b=1", "a b=1", "a/b=1", "a.k=1", "s.k=\xff" };
	struct toml t;

	(void)state;
	assert_int_equal(toml_parse(&t, "a=1\n", 4, "f", NULL), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = { 0 };

		assert_int_equal(toml_set(&t, cases[i], &err), -1);
		assert_int_equal(err.code, ERR_USAGE);
		assert_contains(err.text, "--set ");
	}
	toml_clear(&t);
}

static void test_print_reads_back(void **state)
{
	static const char text[] = "a = 1\nr = 1e22\nx = 0.1\nq = 3.0\n"
				   "s = \"tab\\t nl\\n q\\\" b\\\\ u\\u0001 \xe2\x82\xac\"\n"
				   "\"odd key\" = []\n'dot.ted' = {}\n\"\" = 1\n"
				   "[e]\n[t]\nv = [1, {k = 'x', l = [2]}]\n[t.u.w]\nz = false\n"
				   "[[arr]]\nk = 1\n[[arr]]\n";
	struct err err = { 0 };
	struct toml a, b;
	char *printed;

	(void)state;
	assert_int_equal(toml_parse(&a, text, sizeof(text) - 1, "a", &err), 0);
	printed = toml_print(&a);
	if (toml_parse(&b, printed, strlen(printed), "b", &err) < 0)
		fail_msg("%s\n%s", err.text, printed);
	assert_true(json_equal(a.root, b.root));
	free(printed);
	toml_clear(&a);
	toml_clear(&b);
}

static void test_load(void **state)
{
	struct err err = { 0 };
	struct toml t;

	(void)state;
	write_text("x.toml", "a = 1\n");
	assert_int_equal(toml_load(&t, "x.toml", &err), 0);
	assert_string_equal(t.file, "x.toml");
	toml_clear(&t);
	assert_int_equal(toml_load(&t, "none.toml", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	toml_clear(&t);
}

/* The deepest that is accepted, too: what headers and dots opened is printed as values, nested. */
static void test_deepest_reads_back(void **state)
{
	static const char dots[] = ".a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"
				   ".a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a";
	int deepest = 0;

	(void)state;
	for (int deep = 1; deep < 40; deep++) {
		struct toml a, b;
		char text[128], *printed;

		snprintf(text, sizeof(text), "[[list]]\na%.*s = 1\n", 2 * deep, dots);
		if (toml_parse(&a, text, strlen(text), "a", NULL) < 0)
			continue;
		deepest = deep;
		printed = toml_print(&a);
		assert_int_equal(toml_parse(&b, printed, strlen(printed), "b", NULL), 0);
		toml_clear(&a);
		toml_clear(&b);
		free(printed);
	}
	assert_in_range(deepest, 28, 32);
}

/* --- mutations of what we ship ---------------------------------------------------------------- */

enum { MUTATIONS = 6000, MUTATED_BYTES = 256 * 1024 };

/* A byte, a piece gone, a piece twice, a piece of elsewhere, or a word that means something. */
static size_t mutate(uint64_t *seed, char *text, size_t len)
{
	static const char *const words[] = {
		"[",  "]",  "[[",  "{",           "}",  "=",  ".",        "\"\"\"", "'''",
		"\\", "#",  "\\u", "\\UFFFFFFFF", "0x", "1e", "inf",      "-",      "+",
		"_",  "\r", "\n",  "1979-05-27",  "T",  ":",  "99:99:99", "\xc3",   "\xe2\x82\xac",
		","
	};
	const char *word = words[random_next(seed) % (sizeof(words) / sizeof(words[0]))];
	size_t at = random_next(seed) % (len + 1), piece = random_next(seed) % 40, from;

	if (piece > len - at)
		piece = len - at;
	switch (random_next(seed) % 5) {
	case 0:
		text[at < len ? at : 0] = (char)random_next(seed);
		return len;
	case 1:
		memmove(text + at, text + at + piece, len - at - piece);
		return len - piece;
	case 2:
		memmove(text + at + piece, text + at, len - at);
		return len + piece;
	case 3:
		from = random_next(seed) % (len - piece + 1);
		memmove(text + at, text + from, piece);
		return len;
	default:
		memmove(text + at + strlen(word), text + at, len - at);
		memcpy(text + at, word, strlen(word));
		return len + strlen(word);
	}
}

/* "FILE:LINE: what", one line for people, exit status 2. */
static void look_at_refusal(const char *text, size_t len, const struct err *err)
{
	long line = 0, lines = 1;
	int start = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	if (err->code != ERR_USAGE || sscanf(err->text, "x.toml:%ld: %n", &line, &start) != 1 ||
	    start == 0 || !err->text[start] || line < 1 || line > lines + 1 ||
	    strchr(err->text, '\n'))
		fail_msg("\"%s\" (%s) is said of:\n%.*s", err->text, err_code_name(err->code),
			 (int)len, text);
}

static void test_mutations(void **state)
{
	static const char *const files[] = {
		"etc/lbd.toml",         "etc/train/demo.toml",        "etc/train/llama-124m.toml",
		"etc/network/efa.toml", "etc/network/slingshot.toml",
	};
	char *text = test_malloc(MUTATED_BYTES);
	uint64_t seed = 17;
	int refused = 0;

	(void)state;
	for (int i = 0; i < MUTATIONS; i++) {
		struct err err = { 0 };
		size_t len;
		char *whole = file_read(source_path(files[(size_t)i % 5]), MUTATED_BYTES / 2, &len,
					&err);
		struct toml t;

		assert_non_null(whole);
		memcpy(text, whole, len);
		free(whole);
		for (uint64_t n = 1 + random_next(&seed) % 4; n > 0; n--)
			len = mutate(&seed, text, len);
		if (toml_parse(&t, text, len, "x.toml", &err) < 0) {
			look_at_refusal(text, len, &err);
			refused++;
		}
		toml_clear(&t);
	}
	assert_in_range(refused, MUTATIONS / 10, MUTATIONS);
	test_free(text);
}

/* What was set on a command line counts over a file also for who reads the printed document. */
static void test_assigned_stays_so(void **state)
{
	static const char text[] = "[a]\nb = \"# --set\"\nc = 1\n[a.d]\ne = 2\n";
	struct toml first, again;
	struct err err = { 0 };
	char *printed;

	(void)state;
	assert_int_equal(toml_parse(&first, text, sizeof(text) - 1, "f", &err), 0);
	assert_int_equal(toml_set(&first, "a.d.f=3", &err), 0);
	assert_int_equal(toml_set(&first, "a.c=4", &err), 0);
	printed = toml_print(&first);
	assert_int_equal(toml_parse(&again, printed, strlen(printed), "f", &err), 0);
	assert_true(json_equal(first.root, again.root));
	assert_int_equal(toml_line(&again, "a.d.f"), TOML_ASSIGNED);
	assert_int_equal(toml_line(&again, "a.c"), TOML_ASSIGNED);
	assert_int_equal(toml_line(&again, "a.b"), 2);
	assert_int_equal(toml_line(&again, "a.d.e"), 6);
	free(printed);
	toml_clear(&first);
	toml_clear(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree_and_lines),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nul_and_size),
		cmocka_unit_test(test_dots_elsewhere),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_bad_set),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_print_reads_back),
		cmocka_unit_test(test_assigned_stays_so),
		cmocka_unit_test(test_deepest_reads_back),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
