/* SPDX-License-Identifier: MIT */
/* checkpoint_rules.c - what a run says of its checkpoints, read once. */
#include "common/checkpoint/checkpoint_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/regexp.h"
#include "common/base/text.h"

enum { PATTERN_MAX_BYTES = 4096, STEP_DIGITS_MAX = 18 };

static const char step_word[] = "{step}";

/* A shell's pattern as a regular expression: neither * nor ? crosses a '/'. */
static char *from_glob(const char *glob)
{
	struct buf out;

	buf_init(&out, PATTERN_MAX_BYTES);
	while (*glob) {
		if (text_begins_with(glob, step_word)) {
			buf_addf(&out, "(?<step>[0-9]+)");
			glob += strlen(step_word);
			continue;
		}
		if (*glob == '*')
			buf_addf(&out, "[^/]*");
		else if (*glob == '?')
			buf_addf(&out, "[^/]");
		else if (isalnum((unsigned char)*glob) || *glob == '/' ||
			 (unsigned char)*glob >= 0x80)
			buf_addf(&out, "%c", *glob);
		else
			buf_addf(&out, "\\%c", *glob);
		glob++;
	}
	return buf_take(&out);
}

static int slashes(const char *text)
{
	int count = 0;

	for (; *text; text++)
		count += *text == '/';
	return count;
}

static int read_pattern(struct checkpoint_rules *rules, const char *pattern, struct err *err)
{
	size_t len;
	char *text;

	while (strncmp(pattern, "./", 2) == 0)
		pattern += 2;
	if (strlen(pattern) > PATTERN_MAX_BYTES / 16)
		return err_set(err, ERR_USAGE, "longer than %d bytes", PATTERN_MAX_BYTES / 16);
	if (pattern[0] == '/' || strncmp(pattern, "../", 3) == 0 || strstr(pattern, "/../"))
		return err_set(err, ERR_USAGE,
			       "names what lies below checkpoint.folder; it must not begin "
			       "with \"/\" nor go up with \"..\"");
	if (strstr(pattern, step_word) && strstr(pattern, "**"))
		return err_set(err, ERR_USAGE,
			       "\"**\" is not known: write \"*/\" for each folder in between");
	text = strstr(pattern, step_word) ? from_glob(pattern) : xstrdup(pattern);
	for (len = strlen(text); len > 0 && text[len - 1] == '/'; len--)
		text[len - 1] = '\0';
	rules->pattern = regexp_create(text, true, err);
	free(text);
	if (!rules->pattern)
		return -1;
	if (!regexp_has_group(rules->pattern, "step"))
		return err_set(err, ERR_USAGE, "must contain {step}, or a group (?<step>\\d+)");
	rules->pattern_depth = slashes(pattern);
	return 0;
}

static int read_layout(struct checkpoint_rules *rules, const char *layout, struct err *err)
{
	char *names;

	rules->is_own = strcmp(layout, "own") == 0;
	rules->row = layout_find(layout);
	if (rules->is_own || rules->row || strcmp(layout, "auto") == 0)
		return 0;
	names = layout_names();
	err_set(err, ERR_USAGE, "must be one of %s", names);
	free(names);
	return -1;
}

struct checkpoint_rules *checkpoint_rules_create(const char *layout, const char *pattern,
						 const char *complete_when, struct err *err)
{
	struct checkpoint_rules *rules = xcalloc(1, sizeof(*rules));
	int rc = 0;

	if (layout && read_layout(rules, layout, err) < 0)
		rc = -1;
	if (rc == 0 && pattern && read_pattern(rules, pattern, err) < 0)
		rc = -1;
	if (rc < 0) {
		checkpoint_rules_destroy(rules);
		return NULL;
	}
	rules->complete_when = complete_when ? xstrdup(complete_when) : NULL;
	return rules;
}

void checkpoint_rules_destroy(struct checkpoint_rules *rules)
{
	if (!rules)
		return;
	regexp_destroy(rules->pattern);
	free(rules->complete_when);
	free(rules);
}

bool checkpoint_rules_is_own(const struct checkpoint_rules *rules)
{
	return rules->is_own && !rules->pattern;
}

struct step_text {
	char digits[STEP_DIGITS_MAX + 1];
};

static void take_step(void *arg, const char *group, const char *value, size_t len)
{
	struct step_text *out = arg;

	if (strcmp(group, "step") == 0 && len <= STEP_DIGITS_MAX)
		snprintf(out->digits, sizeof(out->digits), "%.*s", (int)len, value);
}

int64_t checkpoint_pattern_step(const struct checkpoint_rules *rules, const char *relative)
{
	struct step_text step = { "" };

	if (regexp_match(rules->pattern, relative, strlen(relative)))
		regexp_each_group(rules->pattern, relative, take_step, &step);
	if (!text_is_digits(step.digits))
		return -1;
	return strtoll(step.digits, NULL, 10);
}
