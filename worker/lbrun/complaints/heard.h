/* SPDX-License-Identifier: MIT */
/* heard.h - one line that a trainer or its launcher printed. */
#ifndef LBRUN_COMPLAINTS_HEARD_H
#define LBRUN_COMPLAINTS_HEARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A step that comes so long after a line: what it told was survived, and explains nothing. */
enum { SURVIVED_MS = 60 * 1000 };

struct heard {
	const char *text; /* without prefix and escape sequences; ends in NUL */
	size_t len;
	const char *node; /* "" = not known */
	int64_t rank;     /* -1 = not known */
	bool is_stderr;
	int64_t now_ms;
};

#endif
