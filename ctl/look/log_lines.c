/* SPDX-License-Identifier: MIT */
/* log_lines.c - bytes to lines. A line longer than LINE_MAX_BYTES comes in pieces. */
#include "ctl/look/log_lines.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 64 * 1024 };

static const char error_words[] =
	"error|exception|traceback|fatal|failed|fault|abort|killed|panic|denied|no space|out of memory|"
	"quota exceeded|not found|no such file|NCCL WARN";

int log_lines_init(struct log_lines *l, const char *grep, bool only_errors, int64_t keep,
		   struct err *err)
{
	char why[200];
	int rc = grep ? regcomp(&l->grep, grep, REG_EXTENDED | REG_NOSUB) : 0;

	if (rc) {
		regerror(rc, &l->grep, why, sizeof(why));
		return err_set(err, ERR_USAGE, "--grep %.100s: bad regular expression: %s", grep,
			       why);
	}
	l->has_grep = grep != NULL;
	l->only_errors = only_errors && regcomp(&l->errors, error_words,
						REG_EXTENDED | REG_NOSUB | REG_ICASE) == 0;
	l->keep = keep;
	l->last = keep > 0 ? xcalloc((size_t)keep, sizeof(l->last[0])) : NULL;
	buf_init(&l->line, LINE_MAX_BYTES);
	return 0;
}

void log_lines_fini(struct log_lines *l)
{
	for (int64_t i = 0; l->last && i < l->keep; i++)
		free(l->last[i]);
	free(l->last);
	if (l->has_grep)
		regfree(&l->grep);
	if (l->only_errors)
		regfree(&l->errors);
	buf_fini(&l->line);
}

/* "[n1:3] text" → "text" */
static const char *after_prefix(const char *text)
{
	const char *end = text[0] == '[' ? strstr(text, "] ") : NULL;

	return end && !memchr(text, ' ', (size_t)(end - text)) ? end + 2 : text;
}

/* A traceback is wanted as a whole, down to the line that says what was raised. */
static bool is_error(struct log_lines *l, const char *text)
{
	const char *words = after_prefix(text);

	if (strstr(text, "Traceback (most recent call last)")) {
		l->in_traceback = true;
		return true;
	}
	if (l->in_traceback) {
		l->in_traceback = words[0] == ' ' || words[0] == '\0';
		return true;
	}
	return regexec(&l->errors, text, 0, NULL, 0) == 0;
}

static void end_line(struct log_lines *l)
{
	const char *text = l->line.data ? l->line.data : "";
	char **slot;

	l->redraws = false;
	if ((!l->only_errors || is_error(l, text)) &&
	    (!l->has_grep || regexec(&l->grep, text, 0, NULL, 0) == 0)) {
		if (!l->last) {
			l->on_line(l->arg, text, l->line.len);
		} else {
			slot = &l->last[l->seen++ % l->keep];
			free(*slot);
			*slot = xstrndup(text, l->line.len);
		}
	}
	buf_drop(&l->line, l->line.len);
}

void log_lines_add(struct log_lines *l, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n') {
			end_line(l);
		} else if (data[i] == '\r') {
			l->redraws = true;
		} else {
			if (l->redraws)
				buf_drop(&l->line, l->line.len);
			l->redraws = false;
			if (buf_add(&l->line, data[i] ? &data[i] : "?", 1) < 0) {
				end_line(l);
				buf_add(&l->line, &data[i], 1);
			}
		}
	}
}

void log_lines_end(struct log_lines *l)
{
	if (l->line.len > 0)
		end_line(l);
}

void log_lines_flush(struct log_lines *l)
{
	int64_t count = l->seen < l->keep ? l->seen : l->keep;

	for (int64_t i = l->seen - count; l->last && i < l->seen; i++) {
		char *text = l->last[i % l->keep];

		l->on_line(l->arg, text, strlen(text));
		free(text);
	}
	free(l->last);
	l->last = NULL;
}
