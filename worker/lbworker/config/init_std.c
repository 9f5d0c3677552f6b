/* SPDX-License-Identifier: MIT */
/* init_std.c - number | sqrt(number/(number h)) | sqrt(number/h) */
#include "worker/lbworker/config/init_std.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

static const char *skip(const char *at)
{
	return at + strspn(at, " \t*");
}

/* Past `word`, or NULL. */
static const char *expect(const char *at, const char *word)
{
	if (!at)
		return NULL;
	at = skip(at);
	return text_begins_with(at, word) ? at + strlen(word) : NULL;
}

static const char *number(const char *at, double *value)
{
	char *end;

	if (!at)
		return NULL;
	at = skip(at);
	*value = strtod(at, &end);
	return end == at ? NULL : end;
}

/* Past "h" or "(5h)", with *factor 1 or 5; NULL. */
static const char *divisor(const char *at, double *factor)
{
	const char *open = expect(at, "("), *behind = number(open, factor);

	if (!behind)
		*factor = 1;
	if (!open)
		return expect(at, "h");
	return expect(expect(behind ? behind : open, "h"), ")");
}

int init_std_parse(const char *text, size_t width, double *std)
{
	const char *root = expect(text, "sqrt"), *end;
	double above, below;

	if (root) {
		end = expect(number(expect(root, "("), &above), "/");
		end = expect(divisor(end, &below), ")");
		*std = end ? sqrt(above / (below * (double)width)) : 0;
	} else {
		end = number(text, std);
	}
	return end && *skip(end) == '\0' && *std >= 1e-9 && *std <= 10 ? 0 : -1;
}
