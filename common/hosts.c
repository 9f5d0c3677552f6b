/* SPDX-License-Identifier: MIT */
#include "common/hosts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(json_t *list, const char *text, size_t len)
{
	if (len > 0 && json_array_size(list) < HOSTS_MAX)
		json_array_append_new(list, json_stringn(text, len));
}

struct part {			/* PREFIX[RANGES]SUFFIX */
	const char *prefix, *ranges, *suffix;
	int prefix_len, suffix_len;
};

static void add_range(json_t *list, const struct part *p, const char *first, const char *last)
{
	int width = (int)strspn(first, "0123456789");
	long from = strtol(first, NULL, 10);
	long to = last ? strtol(last, NULL, 10) : from;

	for (long n = from; n <= to && json_array_size(list) < HOSTS_MAX; n++) {
		char name[512];
		int len = snprintf(name, sizeof(name), "%.*s%0*ld%.*s", p->prefix_len, p->prefix,
				   width, n, p->suffix_len, p->suffix);

		if (len > 0 && (size_t)len < sizeof(name))
			add(list, name, (size_t)len);
	}
}

static void add_ranges(json_t *list, const struct part *p)
{
	for (const char *at = p->ranges; *at && *at != ']';) {
		size_t len = strcspn(at, ",]");
		const char *dash = memchr(at, '-', len);

		add_range(list, p, at, dash ? dash + 1 : NULL);
		at += len;
		if (*at == ',')
			at++;
	}
}

/* One name or bracketed group, up to a comma outside of brackets. */
static void add_part(json_t *list, const char *text, size_t len)
{
	const char *open = memchr(text, '[', len);
	const char *close = open ? memchr(open, ']', len - (size_t)(open - text)) : NULL;
	struct part p;

	if (!close || strspn(open + 1, "0123456789,-") != (size_t)(close - open) - 1) {
		add(list, text, len);
		return;
	}
	p = (struct part){
		.prefix = text,
		.prefix_len = (int)(open - text),
		.ranges = open + 1,
		.suffix = close + 1,
		.suffix_len = (int)(len - (size_t)(close + 1 - text)),
	};
	add_ranges(list, &p);
}

json_t *hosts_expand(const char *text)
{
	json_t *list = json_array();
	const char *start = text;
	bool in_brackets = false;

	for (const char *at = text;; at++) {
		if (*at == '[')
			in_brackets = true;
		else if (*at == ']')
			in_brackets = false;
		if (*at && (*at != ',' || in_brackets))
			continue;
		add_part(list, start, (size_t)(at - start));
		if (!*at)
			return list;
		start = at + 1;
	}
}
