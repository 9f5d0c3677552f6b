/* SPDX-License-Identifier: MIT */
/* hosts.c - n[1-3,7] becomes n1, n2, n3, n7, and back. */
#include "common/run/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static void add(json_t *list, const char *text, size_t len)
{
	if (len > 0 && json_array_size(list) < HOSTS_MAX)
		json_array_append_new(list, json_stringn(text, len));
}

#define DIGITS "0123456789"

/* PREFIX[RANGES]SUFFIX */
struct part {
	const char *prefix, *ranges, *suffix;
	int prefix_len, suffix_len;
};

static void add_part(json_t *list, const char *text, size_t len);

/* "7" or "01-16", in text[0 … len); -1: neither. Nine digits are what a long surely holds. */
static int read_range(const char *text, size_t len, long *first, long *last)
{
	size_t width = strspn(text, DIGITS), used = width;

	if (width < 1 || width > 9)
		return -1;
	*first = *last = strtol(text, NULL, 10);
	if (text[width] == '-') {
		const char *second = text + width + 1;
		size_t more = strspn(second, DIGITS);
		if (more < 1 || more > 9)
			return -1;
		*last = strtol(second, NULL, 10);
		used += 1 + more;
	}
	return used == len && *last >= *first ? 0 : -1;
}

static bool are_ranges(const char *text, const char *end)
{
	long first, last;

	for (;; text++) {
		size_t len = strcspn(text, ",]");
		if (read_range(text, len, &first, &last) != 0)
			return false;
		text += len;
		if (text == end)
			return true;
	}
}

/* What stands behind may have brackets of its own. */
static void add_range(json_t *list, const struct part *p, const char *range, size_t len)
{
	int width = (int)strspn(range, DIGITS);
	long first, last;

	if (read_range(range, len, &first, &last) != 0)
		return;
	for (long n = first; n <= last && json_array_size(list) < HOSTS_MAX; n++) {
		char *name = xasprintf("%.*s%0*ld%.*s", p->prefix_len, p->prefix, width, n,
				       p->suffix_len, p->suffix);

		add_part(list, name, strlen(name));
		free(name);
	}
}

static void add_ranges(json_t *list, const struct part *p)
{
	for (const char *at = p->ranges; *at != ']';) {
		size_t len = strcspn(at, ",]");

		add_range(list, p, at, len);
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

	if (!close || !are_ranges(open + 1, close)) {
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

	for (const char *at = text; at; at++) {
		if (*at == '[')
			in_brackets = true;
		else if (*at == ']')
			in_brackets = false;
		if (*at && (*at != ',' || in_brackets))
			continue;
		add_part(list, start, (size_t)(at - start));
		if (!*at)
			break;
		start = at + 1;
	}
	return list;
}

/* --- back ------------------------------------------------------------------------------------- */

/* PREFIX and a number at the end */
struct numbered {
	const char *name;
	size_t prefix_len, width; /* width: of the number; 0 = it has none that we can count on */
	long number;
};

static struct numbered take_apart(const char *name)
{
	struct numbered n = { .name = name, .prefix_len = strlen(name) };

	while (n.prefix_len > 0 && name[n.prefix_len - 1] >= '0' && name[n.prefix_len - 1] <= '9')
		n.prefix_len--;
	n.width = strlen(name) - n.prefix_len;
	if (n.width > 9)
		n.width = 0;
	n.number = n.width ? strtol(name + n.prefix_len, NULL, 10) : 0;
	return n;
}

/* Is b what comes after a? "n10" is that after "n9", "n010" is not that after "n09": a range has as
 * many digits as its first number, and more only where the number needs them. */
static bool follows(const struct numbered *a, const struct numbered *b)
{
	bool is_even = a->width == b->width ||
		       (a->width < b->width && b->name[b->prefix_len] != '0');

	return a->width && b->width && is_even && a->prefix_len == b->prefix_len &&
	       strncmp(a->name, b->name, a->prefix_len) == 0 && b->number == a->number + 1;
}

/* first … last, all in a row; nothing when there is no room. */
static void add_row(struct buf *out, const struct numbered *first, const struct numbered *last)
{
	const char *comma = out->len ? "," : "";

	if (!first->name)
		return;
	if (first->number == last->number)
		buf_addf(out, "%s%s", comma, first->name);
	else
		buf_addf(out, "%s%.*s[%s-%s]", comma, (int)first->prefix_len, first->name,
			 first->name + first->prefix_len, last->name + last->prefix_len);
}

char *hosts_fold(const json_t *names, size_t limit)
{
	struct numbered first = { 0 }, last = { 0 };
	struct buf out;
	json_t *item;
	size_t i;

	buf_init(&out, limit);
	buf_addf(&out, "%s", "");
	json_array_foreach(names, i, item) {
		struct numbered n;

		if (!json_is_string(item))
			continue;
		n = take_apart(json_string_value(item));
		if (!first.name || !follows(&last, &n)) {
			add_row(&out, &first, &last);
			first = n;
		}
		last = n;
	}
	add_row(&out, &first, &last);
	return buf_take(&out);
}

bool hosts_have(const char *text, const char *name)
{
	json_t *names = hosts_expand(text), *each;
	bool has = false;
	size_t i;

	json_array_foreach(names, i, each) {
		has = has || strcmp(json_string_value(each), name) == 0;
	}
	json_decref(names);
	return has;
}
