/* SPDX-License-Identifier: MIT */
/* log_lines.h - output as lines: what a carriage return redrew is one line, the last; which lines
 * are wanted, and only the last of them. */
#ifndef CTL_LOOK_LOG_LINES_H
#define CTL_LOOK_LOG_LINES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/strv.h"

struct log_lines {
	/* A whole line, without its end; the bytes are borrowed, and may be anything. */
	void (*on_line)(void *arg, const char *text, size_t len);
	void *arg;
	struct buf line;
	bool redraws; /* a carriage return came: what follows replaces the line */
	bool has_grep, only_errors;
	struct strv tracebacks; /* that are not over, by what stands in front of their lines */
	regex_t grep, errors;
	char **last; /* ring of the last lines; NULL = all are passed on at once */
	int64_t keep, seen;
};

/* `grep`: extended regular expression, NULL = every line; `keep`: so many of the last, 0 = all. -1
 * with err when the expression is bad. Undo with log_lines_fini. */
int log_lines_init(struct log_lines *l, const char *grep, bool only_errors, int64_t keep,
		   struct err *err);
void log_lines_fini(struct log_lines *l);
void log_lines_add(struct log_lines *l, const char *data, size_t len);
/* Ends an unfinished line. */
void log_lines_end(struct log_lines *l);
/* "[n1:3] text" → "text" */
const char *log_line_words(const char *text);
/* Passes on what was kept; from now on lines are passed on as they come. */
void log_lines_flush(struct log_lines *l);

#endif
