/* SPDX-License-Identifier: MIT */
/* text.c - takes out of text what a terminal would act upon.
 *
 * Whatever a trainer, a file name or a config says may end on somebody's terminal. An escape
 * sequence there can retitle windows or forge lines, hence one filter for errors and logs. C1
 * controls (U+0080..U+009F) count too: some terminals obey them. */
#include "common/base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Length that the first byte promises; 0 for bytes that start nothing. */
static size_t promised(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef)
		return 3;
	if (c >= 0xf0 && c <= 0xf4)
		return 4;
	return 0;
}

size_t text_utf8_step(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t want = len > 0 ? promised(s[0]) : 0;

	if (want == 0 || want > len)
		return 0;
	for (size_t i = 1; i < want; i++) {
		if (!is_tail(s[i]))
			return 0;
	}
	/* Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return want;
}

bool text_is_utf8(const char *text, size_t len)
{
	for (size_t at = 0, step; at < len; at += step) {
		step = text_utf8_step(text + at, len - at);
		if (step == 0)
			return false;
	}
	return true;
}

static bool is_control(const char *text, size_t step)
{
	const unsigned char *s = (const unsigned char *)text;

	if (step == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return step == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

const char *text_last_line(const char *text)
{
	const char *line = strrchr(text, '\n');

	return line ? line + 1 : text;
}

bool text_begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

bool text_ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

size_t text_digits(const char *text)
{
	return strspn(text, "0123456789");
}

bool text_is_digits(const char *text)
{
	return text[0] != '\0' && text[text_digits(text)] == '\0';
}

void text_filter(char *text, text_fate_of *fate, unsigned how)
{
	size_t len = strlen(text);
	size_t to = 0;

	for (size_t at = 0; at < len;) {
		size_t step = text_utf8_step(text + at, len - at);
		enum text_fate becomes = step ? fate(text + at, &step, how) : TEXT_MASK;

		step = step ? step : 1;
		if (becomes == TEXT_MASK)
			text[to++] = '?';
		if (becomes == TEXT_KEEP) {
			memmove(text + to, text + at, step);
			to += step;
		}
		at += step;
	}
	text[to] = '\0';
}

static enum text_fate without_controls(const char *at, size_t *len, unsigned how)
{
	(void)how;
	return is_control(at, *len) ? TEXT_MASK : TEXT_KEEP;
}

void text_copy(char *out, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(out, text, len);
	out[len] = '\0';
}

void text_keep(char **kept, const char *text)
{
	if (*kept && strcmp(*kept, text) == 0)
		return;
	free(*kept);
	*kept = xstrdup(text);
}

void text_clean(char *text)
{
	for (char *tab = strchr(text, '\t'); tab; tab = strchr(tab, '\t'))
		*tab = ' ';
	text_filter(text, without_controls, 0);
}

/* "a/b" is not named by "a/bc", nor by "x/a/b". */
static bool names(const char *text, const char *path)
{
	size_t len = strlen(path);

	for (const char *at = strstr(text, path); len > 0 && at; at = strstr(at + 1, path)) {
		bool begins = at == text || strchr(" :\"'(", at[-1]);

		if (begins && (at[len] == '\0' || strchr(" :/,;\"')", at[len])))
			return true;
	}
	return false;
}

const char *text_entity(char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

char *text_percents(const char *text)
{
	char *out = xmalloc(2 * strlen(text) + 1), *at = out;

	for (; *text; *at++ = *text++)
		if (*text == '%')
			*at++ = '%';
	*at = '\0';
	return out;
}

char *text_about(const char *path, const char *text)
{
	return names(text, path) ? xstrdup(text) : xasprintf("%s: %s", path, text);
}

bool text_number(const char *text, size_t len, double *out)
{
	char digits[40];
	size_t n = 0;
	char *end;

	for (size_t i = 0; i < len && n < sizeof(digits) - 1; i++) {
		if (text[i] != ',' && text[i] != '_')
			digits[n++] = text[i];
	}
	digits[n] = '\0';
	*out = strtod(digits, &end);
	return end != digits && *end == '\0';
}
