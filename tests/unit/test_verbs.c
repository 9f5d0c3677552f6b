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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_man_page),
		cmocka_unit_test(test_outsiders_may_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
