/* SPDX-License-Identifier: MIT */
/* unit.h - what every unit test needs. Tests run in an empty folder of their own (run.sh), so they
 * may use relative paths as they like. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A literal for a field that is not const but will not be written to. */
#define TEXT(literal) ((char *)(uintptr_t)(literal))

/* Fails with both texts shown when `part` is nowhere in `text`. */
static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static inline void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

#endif
