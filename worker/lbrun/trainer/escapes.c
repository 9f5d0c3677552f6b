/* SPDX-License-Identifier: MIT */
/* escapes.c - where escape sequences of terminals begin and end. */
#include "worker/lbrun/trainer/escapes.h"

#include <string.h>

/* Length of the one at text[0], an ESC. */
static size_t escape_len(const char *text, size_t len)
{
	size_t at = 2;

	if (len < 2)
		return len;
	if (text[1] == '[') { /* CSI: up to its final byte */
		while (at < len && (text[at] < '@' || text[at] > '~'))
			at++;
		return at < len ? at + 1 : len;
	}
	if (text[1] == ']') { /* OSC: up to BEL or ESC \ */
		while (at < len && text[at] != '\a' && text[at] != '\x1b')
			at++;
		if (at < len && text[at] == '\x1b')
			at++;
		return at < len ? at + 1 : len;
	}
	return 2;
}

size_t escapes_strip(char *line, size_t len)
{
	char *to = memchr(line, '\x1b', len), *end = line + len;
	const char *from = to;

	if (!to)
		return len;
	while (from < end) {
		if (*from == '\x1b')
			from += escape_len(from, (size_t)(end - from));
		else
			*to++ = *from++;
	}
	*to = '\0';
	return (size_t)(to - line);
}
