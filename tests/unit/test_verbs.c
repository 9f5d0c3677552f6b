/* SPDX-License-Identifier: MIT */
/* test_verbs.c - who may do what is one table (common/run/verbs.h); the man page says the same,
 * verb by verb. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/run/verbs.h"
#include "tests/unit/source.h"

static const char *const words[ROLE_COUNT] = {
	[ROLE_MEMBER] = "team",
	[ROLE_SUBMITTER] = "owner; team where team.may\\_submit",
	[ROLE_OWNER] = "owner",
};

/* In a man page an underscore begins what is underlined. */
static const char *escaped(const char *name)
{
	static char out[64];
	size_t n = 0;

	for (; *name && n + 3 < sizeof(out); name++) {
		if (*name == '_')
			out[n++] = '\\';
		out[n++] = *name;
	}
	out[n] = '\0';
	return out;
}

static void test_man_page(void **state)
{
	struct err err = { 0 };
	char *text = file_read(source_path("docs/man/lbd.8.scd"), 256 * 1024, NULL, &err);

	(void)state;
	if (!text)
		fail_msg("%s", err.text);
	for (int v = 0; v < VERB_COUNT; v++) {
		char line[256];

		snprintf(line, sizeof(line), "\n*%s*\n\t%s: %s\n", escaped(verb_info[v].name),
			 words[verb_info[v].least], verb_info[v].help);
		if (!strstr(text, line))
			fail_msg("docs/man/lbd.8.scd does not say, word for word:%s", line);
	}
	free(text);
}

static void test_outsiders_may_nothing(void **state)
{
	(void)state;
	for (int v = 0; v < VERB_COUNT; v++)
		assert_true(verb_info[v].least > ROLE_NONE);
}

/* Who writes 1 or "yes" means no real removal. */
static void test_dry_run(void **state)
{
	static const struct {
		const char *value;
		bool is_taken;
	} rows[] = { { "true", true }, { "false", true },    { "null", true }, { "1", false },
		     { "0", false },   { "\"yes\"", false }, { "[]", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { 0 };
		enum verb verb;
		char line[128];
		json_t *args;

		snprintf(line, sizeof(line),
			 "{\"v\":1,\"verb\":\"rm\",\"args\":{\"run\":\"a\",\"dry_run\":%s}}",
			 rows[i].value);
		args = verb_request_parse(line, strlen(line), &verb, &err);
		if ((args != NULL) != rows[i].is_taken)
			fail_msg("dry_run %s: %s", rows[i].value, err.text);
		if (!args)
			assert_non_null(strstr(err.text, "\"dry_run\" must be true or false"));
		json_decref(args);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_man_page),
		cmocka_unit_test(test_outsiders_may_nothing),
		cmocka_unit_test(test_dry_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
