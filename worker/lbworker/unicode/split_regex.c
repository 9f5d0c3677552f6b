/* SPDX-License-Identifier: MIT */
/* split_regex.c - Oniguruma's patterns in the words of PCRE2, compiled where it can be; matches are
 * found from where the last one ended. */
#include "worker/lbworker/unicode/split_regex.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/base/mem.h"
#include "common/base/text.h"
#include "worker/lbworker/unicode/unicode.h"

enum { MATCH_LIMIT = 1000000, PATTERN_BYTES_MAX = 1 << 20, CATEGORY_LETTERS = 2 };

struct split_regex {
	pcre2_code *code;
	pcre2_match_context *limits;
};

/* --- from one dialect to the other ------------------------------------------------------------ */

/* White_Space: PCRE2's \s has U+180E, too. */
#define SPACES \
	"\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
	"\\x{205f}\\x{3000}"
#define OTHERS_THAN_SPACES \
	"\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}" \
	"\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-" \
	"\\x{10ffff}"
/* Alphabetic, though no letters; and what Oniguruma takes for words of Latin-1. */
#define OTHERS_OF_WORDS \
	"\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}" \
	"\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

struct translation {
	const char *at;
	struct buf out;
	int depth; /* of classes; 0: in none */
	struct err *err;
};

static int refuse(struct translation *t, const char *what, size_t len)
{
	return err_set(t->err, ERR_USAGE, "%.*s in a pattern is not supported", (int)len, what);
}

static int put(struct translation *t, const char *text, size_t len)
{
	return buf_add(&t->out, text, len)
		       ? err_set(t->err, ERR_USAGE, "a pattern of that length is not supported")
		       : 0;
}

static int put_text(struct translation *t, const char *text)
{
	return put(t, text, strlen(text));
}

/* A category, and its characters that PCRE2 may be too old to know. */
static int put_category(struct translation *t, const char *category)
{
	char text[16];

	snprintf(text, sizeof(text), "\\p{%.2s}", category);
	return put_text(t, text) || unicode_young(category, &t->out) ? -1 : 0;
}

/* What stands for a set of characters: its members, in brackets where no class is around them. */
static int begin_set(struct translation *t, bool negated, const char *escape)
{
	if (t->depth > 0)
		return negated ? refuse(t, escape, 2) : 0;
	return put_text(t, negated ? "[^" : "[");
}

static int end_set(struct translation *t)
{
	return t->depth > 0 ? 0 : put_text(t, "]");
}

static int put_spaces(struct translation *t, bool negated)
{
	if (t->depth > 0)
		return put_text(t, negated ? OTHERS_THAN_SPACES : SPACES);
	return put_text(t, negated ? "[^" SPACES "]" : "[" SPACES "]");
}

static int put_word(struct translation *t, bool negated, const char *escape)
{
	static const char *const categories[] = { "L", "M", "Nd", "Nl", "Pc" };

	if (begin_set(t, negated, escape) || put_text(t, OTHERS_OF_WORDS))
		return -1;
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
		if (put_category(t, categories[i]))
			return -1;
	return end_set(t);
}

/* \p{L}, \p{^L}, \P{L}: general categories, of one letter or two. */
static int put_property(struct translation *t, bool negated, const char *escape)
{
	const char *name = escape + 3, *close = escape[2] == '{' ? strchr(name, '}') : NULL;
	char category[CATEGORY_LETTERS + 1] = "";

	if (close && *name == '^') {
		negated = !negated;
		name++;
	}
	size_t len = close ? (size_t)(close - name) : 0;
	if (len < 1 || len > CATEGORY_LETTERS || !strchr("LMNPSZ", name[0]))
		return refuse(t, escape, close ? (size_t)(close + 1 - escape) : 2);
	memcpy(category, name, len);
	t->at = close + 1;
	return begin_set(t, negated, escape) || put_category(t, category) || end_set(t) ? -1 : 0;
}

/* \u3042 */
static int put_number(struct translation *t, const char *escape)
{
	enum { DIGITS = 4 };
	char text[16];

	for (int i = 0; i < DIGITS; i++)
		if (!isxdigit((unsigned char)escape[2 + i]))
			return refuse(t, escape, 2);
	t->at = escape + 2 + DIGITS;
	snprintf(text, sizeof(text), "\\x{%.4s}", escape + 2);
	return put_text(t, text);
}

static int put_escape(struct translation *t)
{
	const char *escape = t->at;
	char c = escape[1];

	t->at += c ? 2 : 1;
	switch (c) {
	case 'p':
	case 'P':
		return put_property(t, c == 'P', escape);
	case 's':
	case 'S':
		return put_spaces(t, c == 'S');
	case 'w':
	case 'W':
		return put_word(t, c == 'W', escape);
	case 'd':
	case 'D':
		return begin_set(t, c == 'D', escape) || put_category(t, "Nd") || end_set(t) ? -1
											     : 0;
	case 'v':
		return put_text(t, "\\x{b}");
	case 'u':
		return put_number(t, escape);
	case 'n':
	case 'r':
	case 't':
	case 'f':
		return put(t, escape, 2);
	case 'x':
		if (escape[2] != '{' || !strchr(escape, '}'))
			return refuse(t, escape, 2);
		t->at = strchr(escape, '}') + 1;
		return put(t, escape, (size_t)(t->at - escape));
	default:
		/* of a longer character the other bytes follow by themselves */
		return c && !isalnum((unsigned char)c) ? put(t, escape, 2)
						       : refuse(t, escape, c ? 2 : 1);
	}
}

/* Within a class: one that is in it is a part of it, as [(\s|[.,])] is in Oniguruma. */
static int put_in_class(struct translation *t)
{
	char c = *t->at++;

	if (c == '[') {
		if (strchr("^:]", *t->at))
			return refuse(t, t->at - 1, 2);
		t->depth++;
		return 0;
	}
	if (c == '&' && *t->at == '&')
		return refuse(t, "&&", 2);
	if (c == ']' && --t->depth > 0)
		return 0;
	return put(t, &c, 1);
}

/* What begins with ( [ { } ^: the same in both dialects, or refused. */
static int put_special(struct translation *t)
{
	static const char *const groups[] = { "(?:", "(?=", "(?!", "(?>", "(?i:" };
	const char *at = t->at++;

	if (at[0] == '[') {
		size_t len = at[1] == '^' ? 2 : 1;
		if (at[len] == ']')
			return refuse(t, at, len + 1);
		t->at = at + len;
		t->depth = 1;
		return put(t, at, len);
	}
	if (at[0] == '(' && at[1] == '?') {
		for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
			if (text_begins_with(at, groups[i]))
				return put(t, at, 1);
		return refuse(t, at, strnlen(at, 4));
	}
	if (at[0] == '^')
		return refuse(t, at, 1);
	if ((at[0] == '}' && at[1] && strchr("+?*{", at[1])) || (at[0] == '{' && at[1] == ','))
		return refuse(t, at, 2);
	return put(t, at, 1);
}

/* `pattern` into t->out. */
static int translate(struct translation *t, const char *pattern)
{
	for (t->at = pattern; *t->at;) {
		int rc;
		if (*t->at == '\\')
			rc = put_escape(t);
		else if (t->depth > 0)
			rc = put_in_class(t);
		else if (strchr("([{}^", *t->at))
			rc = put_special(t);
		else
			rc = put(t, t->at++, 1);
		if (rc)
			return -1;
	}
	return put(t, "", 1);
}

/* --- by PCRE2 --------------------------------------------------------------------------------- */

static int check(const pcre2_code *code, struct err *err)
{
	uint32_t back = 0, empty = 0;

	pcre2_pattern_info(code, PCRE2_INFO_MAXLOOKBEHIND, &back);
	pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &empty);
	if (back > 0 || empty)
		return err_set(err, ERR_USAGE, "a pattern that %s is not supported",
			       empty ? "matches nothing" : "looks behind");
	return 0;
}

static pcre2_code *compile(const char *pattern, struct err *err)
{
	struct translation t = { .err = err };
	pcre2_code *code = NULL;
	int number;
	PCRE2_SIZE at;

	buf_init(&t.out, PATTERN_BYTES_MAX);
	if (translate(&t, pattern) == 0) {
		code = pcre2_compile((PCRE2_SPTR)t.out.data, PCRE2_ZERO_TERMINATED,
				     PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &number, &at, NULL);
		PCRE2_UCHAR text[128];
		if (!code && pcre2_get_error_message(number, text, sizeof(text)) > 0)
			err_set(err, ERR_USAGE, "the pattern: %s", (const char *)text);
	}
	buf_fini(&t.out);
	if (code && check(code, err)) {
		pcre2_code_free(code);
		code = NULL;
	}
	return code;
}

struct split_regex *split_regex_create(const char *pattern, struct err *err)
{
	pcre2_code *code = compile(pattern, err);

	if (!code) {
		err_wrap(err, "\"%.60s\"", pattern);
		return NULL;
	}
	struct split_regex *r = xcalloc(1, sizeof(*r));
	r->code = code;
	r->limits = pcre2_match_context_create(NULL);
	if (r->limits)
		pcre2_set_match_limit(r->limits, MATCH_LIMIT);
	pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return r;
}

void split_regex_destroy(struct split_regex *r)
{
	if (!r)
		return;
	pcre2_match_context_free(r->limits);
	pcre2_code_free(r->code);
	free(r);
}

/* --- what a match is written to: one for each thread, made at its first word, gone with it ---- */

static pthread_key_t match_key;

static void free_match(void *match)
{
	pcre2_match_data_free(match);
}

static void make_key(void)
{
	if (pthread_key_create(&match_key, free_match) != 0)
		abort(); /* a process has 1024 of them */
}

static pcre2_match_data *match_of_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pcre2_match_data *match;

	pthread_once(&once, make_key);
	match = pthread_getspecific(match_key);
	if (!match) {
		match = pcre2_match_data_create(1, NULL);
		pthread_setspecific(match_key, match);
	}
	return match;
}

const unsigned char *split_regex_piece(const struct split_regex *r, const unsigned char *at,
				       const unsigned char *end, bool *is_match)
{
	pcre2_match_data *found = match_of_thread();

	*is_match = false;
	if (!found)
		return NULL;
	int rc = pcre2_match(r->code, at, (PCRE2_SIZE)(end - at), 0, PCRE2_NO_UTF_CHECK, found,
			     r->limits);
	const PCRE2_SIZE *o = pcre2_get_ovector_pointer(found);
	if (rc < 0)
		return rc == PCRE2_ERROR_NOMATCH ? end : NULL;
	*is_match = o[0] == 0;
	return at + (*is_match ? o[1] : o[0]);
}
