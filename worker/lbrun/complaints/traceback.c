/* SPDX-License-Identifier: MIT */
/* traceback.c - follows tracebacks line by line: margins, marks, groups, boxes. */
#include "worker/lbrun/complaints/traceback.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

void traceback_reset(struct traceback *t)
{
	*t = (struct traceback){ .rank = -1, .group_rank = -1 };
}

/* The line before its first one says what it is about. */
static void begin(struct traceback *t)
{
	t->aside = t->said;
	t->has_cause = t->says_cause;
}

/* Exceptions that were raised together are drawn with a margin, which is taken off. Of them the
 * first counts: it mostly ended the others. */
static enum traceback_part follow_group(struct traceback *t, struct heard *line)
{
	static const char begins[] = "Exception Group Traceback";
	const char *text = line->text + strspn(line->text, " ");
	bool is_drawn = text > line->text && (*text == '+' || *text == '|');

	if (is_drawn && text_begins_with(text + 1 + (text[1] == ' '), begins)) {
		t->is_later &= *text == '|';
		t->in_group = t->is_open = true;
		begin(t);
		t->group_rank = t->rank = line->rank;
		t->mark[0] = '\0';
		return TRACEBACK_INSIDE;
	}
	if (!t->in_group || line->rank != t->group_rank)
		return TRACEBACK_NONE;
	t->in_group = is_drawn;
	if (!is_drawn)
		return TRACEBACK_NONE;
	if (*text == '+') /* "+---------------- 2 ----------------" */
		t->is_later |= strtol(text + strspn(text, "+-"), NULL, 10) > 1;
	line->text = text + 1 + (text[1] == ' ');
	line->len = strlen(line->text);
	return *text == '+' || t->is_later || strstr(text, " sub-exception") ? TRACEBACK_INSIDE
									     : TRACEBACK_NONE;
}

/* Does it begin with that mark, perhaps of another time? */
static bool begins_with_mark(const char *text, const char *mark)
{
	for (; *mark; mark++, text++) {
		bool are_digits = isdigit((unsigned char)*mark) && isdigit((unsigned char)*text);

		if (*mark != *text && !are_digits)
			return false;
	}
	return true;
}

/* Loggers and launchers that we do not know put marks in front, the same for each line of it, but
 * for the time; rich draws it into a box. Sacred's are of "calls WITHOUT Sacred internals". */
static bool begins_traceback(struct traceback *t, const struct heard *line)
{
	const char *title = strstr(line->text, "Traceback (most recent call");
	const char *box = strstr(line->text, "╭─");
	const char *at = title && box && box < title ? box : title;

	if (!at || at - line->text >= MARK_BYTES)
		return false;
	if (t->is_open && line->rank != t->rank)
		return true;
	begin(t);
	t->is_code = false;
	snprintf(t->mark, sizeof(t->mark), "%.*s", (int)(at - line->text), line->text);
	t->is_open = true;
	t->rank = line->rank;
	return true;
}

/* Metaflow takes the margins off: a frame, the line of program behind it, and what is drawn
 * below. */
static bool is_flat_inside(struct traceback *t, const char *text)
{
	bool is_frame = text_begins_with(text, "File \"") && strstr(text, "\", line ");
	bool is_inside = is_frame || t->is_code || (*text && text[strspn(text, "^~")] == '\0');

	t->is_code = is_frame;
	return is_inside;
}

/* The first line that is not indented ends it, and says what was raised; those before quote the
 * program, which has words of all kinds. Of several at once the first one counts. */
static enum traceback_part follow_traceback(struct traceback *t, struct heard *line)
{
	size_t mark = strlen(t->mark);

	if (follow_group(t, line) == TRACEBACK_INSIDE || begins_traceback(t, line))
		return TRACEBACK_INSIDE;
	/* it stood behind text without a newline, which is no mark */
	if (text_begins_with(line->text, "  File \""))
		t->mark[0] = mark = 0;
	if (!t->is_open || line->rank != t->rank || !begins_with_mark(line->text, t->mark))
		return TRACEBACK_NONE;
	line->text += mark;
	line->len -= mark;
	if (strchr(" \t+|", line->text[0]) || text_begins_with(line->text, "│") ||
	    text_begins_with(line->text, "╰─") || is_flat_inside(t, line->text))
		return TRACEBACK_INSIDE;
	t->is_open = false;
	return TRACEBACK_END;
}

/* Typer, tyro and others draw a box around what is wrong, and below it what help there is: its
 * first line counts. True: this is none of it. */
static bool is_rest_of_box(struct traceback *t, struct heard *line)
{
	enum box box = t->box;

	t->box = text_begins_with(line->text, "╭─")                     ? BOX_BEGUN
		 : box != BOX_NONE && text_begins_with(line->text, "│") ? BOX_TOLD
									: BOX_NONE;
	if (box != BOX_BEGUN || t->box != BOX_TOLD)
		return t->box != BOX_NONE ||
		       (box == BOX_TOLD && text_begins_with(line->text, "╰─"));
	line->text += strlen("│");
	line->text += strspn(line->text, " ");
	line->len = strlen(line->text);
	return false;
}

/* What a line says of the traceback behind it; what was raised meanwhile is of the same kind. */
static enum aside aside_of(const struct traceback *t, const char *text)
{
	if (strstr(text, "Exception ignored "))
		return ASIDE_IGNORED;
	if (strstr(text, "Exception in thread"))
		return ASIDE_THREAD;
	if (t->says_cause || strstr(text, "During handling of the above exception"))
		return t->aside;
	return ASIDE_NOT;
}

enum traceback_part traceback_hear(struct traceback *t, struct heard *line)
{
	enum traceback_part part = follow_traceback(t, line);

	t->is_ignored = (part == TRACEBACK_END ? t->aside : t->said) == ASIDE_IGNORED;
	t->says_cause = strstr(line->text,
			       "The above exception was the direct cause of the following");
	t->said = aside_of(t, line->text);
	if (part != TRACEBACK_INSIDE && is_rest_of_box(t, line))
		return TRACEBACK_INSIDE;
	return part;
}
