/* SPDX-License-Identifier: MIT */
/* log_lines.c - bytes to lines. A line longer than LINE_MAX_BYTES comes in pieces. */
#include "ctl/look/log_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

enum { LINE_MAX_BYTES = 64 * 1024, TRACEBACKS_MAX = 4096 };

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
	strv_free(l->tracebacks.items);
	buf_fini(&l->line);
}

const char *log_line_words(const char *text)
{
	const char *end = text[0] == '[' ? strstr(text, "] ") : NULL;

	return end && !memchr(text, ' ', (size_t)(end - text)) ? end + 2 : text;
}

/* lbrun's own word on a launch: "lbrun: launch 2 ended: hang: ..." */
static bool is_bad_end(const char *words)
{
	int cause = 0;

	sscanf(words, "lbrun: launch %*d ended: %n", &cause);
	return cause > 0 && !text_begins_with(words + cause, "completed");
}

/* Which of the tracebacks goes on in this line; their count: none does. What stands in front of
 * each is the same in all its lines, be it lbrun's "[n1:3] ", PyTorch's "[rank3]: " or both. */
static size_t find_traceback(const struct log_lines *l, const char *text)
{
	const struct strv *all = &l->tracebacks;
	size_t found = all->count, longest = 0;

	for (size_t i = 0; i < all->count; i++) {
		size_t len = strlen(all->items[i]);

		if (len >= longest && strncmp(text, all->items[i], len) == 0) {
			found = i;
			longest = len;
		}
	}
	return found;
}

static void end_traceback(struct log_lines *l, size_t i)
{
	struct strv *all = &l->tracebacks;

	free(all->items[i]);
	all->items[i] = all->items[--all->count];
	all->items[all->count] = NULL;
}

static void begin_traceback(struct log_lines *l, char *prefix)
{
	size_t i = find_traceback(l, prefix);

	if (i < l->tracebacks.count && strcmp(l->tracebacks.items[i], prefix) == 0) {
		free(prefix);
		return;
	}
	if (l->tracebacks.count == TRACEBACKS_MAX)
		end_traceback(l, 0);
	strv_add(&l->tracebacks, prefix);
}

/* A traceback is wanted as a whole, down to the line that says what was raised, whatever other
 * ranks print in between. */
static bool is_error(struct log_lines *l, const char *text)
{
	const char *traceback = strstr(text, "Traceback (most recent call last)");
	size_t at = find_traceback(l, text);

	if (traceback) {
		begin_traceback(l, xstrndup(text, (size_t)(traceback - text)));
		return true;
	}
	if (at < l->tracebacks.count) {
		const char *words = text + strlen(l->tracebacks.items[at]);

		if (words[0] != ' ' && words[0] != '\0')
			end_traceback(l, at);
		return true;
	}
	return is_bad_end(log_line_words(text)) || regexec(&l->errors, text, 0, NULL, 0) == 0;
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
			const char *byte = data[i] ? &data[i] : "?";

			if (l->redraws)
				buf_drop(&l->line, l->line.len);
			l->redraws = false;
			if (buf_add(&l->line, byte, 1) < 0) {
				end_line(l);
				buf_add(&l->line, byte, 1);
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
