/* SPDX-License-Identifier: MIT */
/* checkpoint_marks.c - what says that a checkpoint is finished: files beside it or in it, and
 * pointers to the newest. */
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_parts.h"
#include "common/checkpoint/steps.h"

enum { POINTER_MAX_BYTES = 4096 };

/* The digits of the step as the name has them ("00000010"); owned by the caller. */
static char *step_digits(const struct checkpoint *c)
{
	for (const char *at = path_base(c->path); *at;) {
		size_t len = text_digits(at);

		if (len > 0 && strtoll(at, NULL, 10) == c->step)
			return xstrndup(at, len);
		at += len > 0 ? len : 1;
	}
	return xasprintf("%lld", (long long)c->step);
}

static char *with_step(const char *text, const char *word, const struct checkpoint *c)
{
	const char *at = strstr(text, word);
	char *digits, *out;

	if (!at)
		return xstrdup(text);
	digits = step_digits(c);
	out = xasprintf("%.*s%s%s", (int)(at - text), text, digits, at + strlen(word));
	free(digits);
	return out;
}

int checkpoint_check_mark(struct checkpoint *c, const char *mark, const char *word, struct err *err)
{
	char *base = checkpoint_base(c), *name = with_step(mark, word, c);
	char *path = path_join("%s/%s", base, name);
	int rc = 0;

	c->is_unfinished = !file_exists(path);
	if (c->is_unfinished)
		rc = err_set(err, ERR_NOT_FOUND, "it is not complete: no %s", name);
	free(path);
	free(name);
	free(base);
	return rc;
}

static char *beside(const struct checkpoint *c, const char *name)
{
	const char *slash = strrchr(c->path, '/');

	return path_join("%.*s%s", slash ? (int)(slash - c->path) + 1 : 0, c->path, name);
}

/* The step that it names, -1 = none; its first line goes to *text (may be NULL), owned by the
 * caller. */
static int64_t step_in_pointer(const char *path, char **text)
{
	char *line = file_read(path, POINTER_MAX_BYTES, NULL, NULL);
	int64_t step = -1;

	if (line) {
		line[strcspn(line, "\r\n")] = '\0';
		step = step_in_name(line);
	}
	if (text)
		*text = line;
	else
		free(line);
	return step;
}

int checkpoint_check_pointer(struct checkpoint *c, struct err *err)
{
	char *path = beside(c, c->row->pointer), *text;
	int64_t newest = step_in_pointer(path, &text);
	int rc = 0;

	c->is_unfinished = newest >= 0 && c->step > newest;
	if (c->is_unfinished)
		rc = err_set(err, ERR_NOT_FOUND, "it is not complete: %s still names %.60s",
			     c->row->pointer, text);
	free(text);
	free(path);
	return rc;
}

int checkpoint_check_unfinished(struct checkpoint *c, struct err *err)
{
	char *path = path_join("%s%s", c->path, c->row->unfinished);
	int rc = 0;

	c->is_unfinished = file_exists(path);
	if (c->is_unfinished)
		rc = err_set(err, ERR_NOT_FOUND, "it is not complete: %s is there",
			     path_base(path));
	free(path);
	return rc;
}

char *checkpoint_mark_beside(const struct checkpoint_rules *rules, const struct checkpoint *c)
{
	if (!c->is_file)
		return NULL;
	if (rules->complete_when)
		return strcmp(rules->complete_when, "manifest") == 0
			       ? NULL
			       : with_step(rules->complete_when, "{step}", c);
	return c->row->last ? with_step(c->row->last, "#", c) : NULL;
}

/* What the trainer wrote there shows how it writes: a number alone, or the name of the folder. */
char *checkpoint_pointer_text(const char *pointer, const struct checkpoint *c)
{
	char *was = file_read(pointer, POINTER_MAX_BYTES, NULL, NULL), *text = NULL;
	size_t digits = was ? text_digits(was) : 0;

	if (was)
		text = digits > 0 && was[digits + strspn(was + digits, "\r\n")] == '\0'
			       ? xasprintf("%lld", (long long)c->step)
			       : xstrdup(path_base(c->path));
	free(was);
	return text;
}

const char *checkpoint_pointer(const struct checkpoint *c, char **text)
{
	char *path = c->row->pointer ? beside(c, c->row->pointer) : NULL;

	*text = path ? checkpoint_pointer_text(path, c) : NULL;
	free(path);
	return *text ? c->row->pointer : NULL;
}

char *checkpoint_named_by(const struct checkpoint_rules *rules, const struct checkpoint *c)
{
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];
		bool fits = rules->row ? row == rules->row
				       : layout_matches(row, path_base(c->path), NULL);
		char *path = fits && row->pointer ? beside(c, row->pointer) : NULL;

		if (path && c->step >= 0 && step_in_pointer(path, NULL) == c->step)
			return path;
		free(path);
	}
	return NULL;
}
