/* SPDX-License-Identifier: MIT */
/* regexp.c - compiles and matches by PCRE2, with limits, so that no pattern takes for ever. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "common/base/regexp.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/mem.h"

/* Backtracking steps: a line of a kilobyte against a bad pattern takes some milliseconds. */
enum { MATCH_LIMIT = 100 * 1000, MESSAGE_BYTES = 120 };

struct regexp {
	pcre2_code *code;
	pcre2_match_context *context;
	pcre2_match_data *match;
};

struct regexp *regexp_create(const char *pattern, bool whole, struct err *err)
{
	uint32_t flags = whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
	struct regexp *r;
	pcre2_code *code;
	PCRE2_SIZE at;
	int why;

	code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, flags, &why, &at, NULL);
	if (!code) {
		PCRE2_UCHAR text[MESSAGE_BYTES] = "";

		pcre2_get_error_message(why, text, sizeof(text));
		err_set(err, ERR_USAGE, "bad regular expression at character %zu: %s",
			(size_t)at + 1, (const char *)text);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r));
	r->code = code;
	r->context = pcre2_match_context_create(NULL);
	r->match = pcre2_match_data_create_from_pattern(code, NULL);
	if (!r->context || !r->match)
		abort();
	pcre2_set_match_limit(r->context, MATCH_LIMIT);
	/* Five times as fast; where a system forbids memory that is made code, it goes without. */
	pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return r;
}

struct regexp *regexp_built_in(const char *pattern)
{
	struct regexp *r = regexp_create(pattern, false, NULL);

	if (!r)
		abort();
	return r;
}

void regexp_destroy(struct regexp *r)
{
	if (!r)
		return;
	pcre2_match_data_free(r->match);
	pcre2_match_context_free(r->context);
	pcre2_code_free(r->code);
	free(r);
}

bool regexp_has_group(const struct regexp *r, const char *name)
{
	return pcre2_substring_number_from_name(r->code, (PCRE2_SPTR)name) > 0;
}

bool regexp_match(struct regexp *r, const char *text, size_t len)
{
	return pcre2_match(r->code, (PCRE2_SPTR)text, len, 0, 0, r->match, r->context) > 0;
}

size_t regexp_match_end(const struct regexp *r)
{
	return pcre2_get_ovector_pointer(r->match)[1];
}

void regexp_each_group(const struct regexp *r, const char *text,
		       void (*each)(void *arg, const char *name, const char *value, size_t len),
		       void *arg)
{
	const PCRE2_SIZE *spans = pcre2_get_ovector_pointer(r->match);
	PCRE2_SPTR row;
	uint32_t count, size;

	pcre2_pattern_info(r->code, PCRE2_INFO_NAMECOUNT, &count);
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	if (count == 0)
		return;
	pcre2_pattern_info(r->code, PCRE2_INFO_NAMETABLE, &row);
	/* A row: the group's number in two bytes, then its name. */
	for (uint32_t i = 0; i < count; i++, row += size) {
		size_t group = (size_t)row[0] << 8 | row[1];
		PCRE2_SIZE begin = spans[2 * group];
		PCRE2_SIZE end = spans[2 * group + 1];

		if (begin != PCRE2_UNSET && end > begin)
			each(arg, (const char *)row + 2, text + begin, end - begin);
	}
}
