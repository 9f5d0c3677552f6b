/* SPDX-License-Identifier: MIT */
/* selector.c - which runs a word on a command line means.
 *
 * The words come from strangers, too, as names of files: matching takes time linear in the name for
 * each '*' (fnmatch(3) may take exponential time), and nothing unprintable gets through. */
#include "common/team/selector.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/names.h"

_Static_assert((int)SELECTOR_MAX_BYTES == (int)NAME_MAX_BYTES, "a selector may be a name");

static const char name_bytes[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

static int bad(const char *text, struct err *err)
{
	char shown[4 * 40 + 1];
	size_t to = 0;

	for (size_t i = 0; i < 40 && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > 0x20 && c < 0x7f && c != '\\' && c != '"')
			shown[to++] = (char)c;
		else
			to += (size_t)snprintf(shown + to, 5, "\\x%02x", c);
	}
	shown[to] = '\0';
	return err_set(err, ERR_USAGE,
		       "\"%s\" names no runs: write a name, a glob with '*' or '?', "
		       "GROUP@group, USER@user or ALL",
		       shown);
}

static bool is_word(const char *text, size_t len, const char *more)
{
	if (len == 0 || len > SELECTOR_MAX_BYTES || text[0] == '-' || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr(name_bytes, text[i]) && !strchr(more, text[i]))
			return false;
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && strcmp(text + len - end_len, end) == 0;
}

int selector_parse(const char *text, struct selector *out, struct err *err)
{
	static const struct {
		const char *end, *more; /* allowed beside the bytes of names */
		enum selector_kind kind;
	} ends[] = { { "@group", "", SELECT_GROUP }, { "@user", "@+", SELECT_USER } };

	*out = (struct selector){ .kind = SELECT_RUN };
	if (strcmp(text, "ALL") == 0)
		out->kind = SELECT_ALL;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t len = strlen(text) -
			     (ends_with(text, ends[i].end) ? strlen(ends[i].end) : 0);

		if (text[len] == '\0')
			continue;
		if (!is_word(text, len, ends[i].more))
			return bad(text, err);
		out->kind = ends[i].kind;
		memcpy(out->word, text, len);
		return 0;
	}
	if (strpbrk(text, "*?"))
		out->kind = SELECT_GLOB;
	if (out->kind == SELECT_RUN && name_check(text, err) < 0)
		return -1;
	if (!is_word(text, strlen(text), "*?"))
		return bad(text, err);
	snprintf(out->word, sizeof(out->word), "%s", text);
	return 0;
}

/* After a mismatch only the last '*' needs to take one character more. */
static bool glob_matches(const char *glob, const char *name)
{
	const char *star = NULL, *again = NULL;

	while (*name) {
		if (*glob == '*') {
			star = glob++;
			again = name;
		} else if (*glob == '?' || *glob == *name) {
			glob++;
			name++;
		} else if (star) {
			glob = star + 1;
			name = ++again;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

bool selector_matches(const struct selector *s, const char *name, const char *group,
		      const char *owner)
{
	switch (s->kind) {
	case SELECT_RUN:
		return strcmp(s->word, name) == 0;
	case SELECT_GLOB:
		return glob_matches(s->word, name);
	case SELECT_GROUP:
		return group && strcmp(s->word, group) == 0;
	case SELECT_USER:
		return strcmp(s->word, owner) == 0;
	case SELECT_ALL:
		return true;
	}
	return false;
}

bool selector_is_one(const struct selector *s)
{
	return s->kind == SELECT_RUN;
}
