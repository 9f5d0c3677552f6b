/* SPDX-License-Identifier: MIT */
/* added_tokens.c - at each place whose byte begins one, the longest that stands there. */
#include "worker/lbworker/text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/unicode/split_regex.h"
#include "worker/lbworker/unicode/unicode.h"

void added_tokens_fini(struct added_tokens *a)
{
	for (size_t i = 0; i < a->count; i++) {
		free(a->token[i].text);
		free(a->token[i].name);
	}
	free(a->token);
	split_regex_destroy(a->word);
	*a = (struct added_tokens){ 0 };
}

void added_tokens_add(struct added_tokens *a, const struct added_token *token)
{
	if ((a->count & (a->count - 1)) == 0)
		a->token = xrealloc(a->token, (a->count ? 2 * a->count : 1) * sizeof(*a->token));
	struct added_token *t = &a->token[a->count++];
	*t = *token;
	t->text = xmalloc(t->len + 1);
	memcpy(t->text, token->text, t->len);
	t->text[t->len] = '\0';
	t->name = token->name ? xstrdup(token->name) : NULL;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* Those that are looked for before a text is normalized, and behind that, do not meet. */
static int by_text(const void *x, const void *y)
{
	const struct added_token *a = x, *b = y;
	int order = compare(a->text, a->len, b->text, b->len);

	return order ? order : a->normalized - b->normalized;
}

static int by_text_and_id(const void *x, const void *y)
{
	const struct added_token *a = x, *b = y;
	int order = by_text(a, b);

	return order ? order : (a->id > b->id) - (a->id < b->id);
}

int added_tokens_complete(struct added_tokens *a, struct err *err)
{
	bool has_words = false;
	size_t kept = 0;

	if (a->count > 1)
		qsort(a->token, a->count, sizeof(*a->token), by_text_and_id);
	for (size_t i = 0; i < a->count; i++) {
		struct added_token *t = &a->token[i];
		if (kept > 0 && by_text(&a->token[kept - 1], t) == 0) {
			free(t->text);
			free(t->name);
			continue;
		}
		a->first[t->normalized][(unsigned char)t->text[0]] = true;
		a->of_class[t->normalized]++;
		has_words = has_words || t->single_word;
		a->token[kept++] = *t;
	}
	a->count = kept;
	if (has_words && !a->word)
		a->word = split_regex_create("[" SPLIT_RUST_WORD "]", err);
	return has_words && !a->word ? -1 : 0;
}

const struct added_token *added_tokens_named(const struct added_tokens *a, const char *name)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(added_token_name(&a->token[i]), name) == 0)
			return &a->token[i];
	return NULL;
}

const struct added_token *added_tokens_with_id(const struct added_tokens *a, uint32_t id)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->token[i].id == id)
			return &a->token[i];
	return NULL;
}

/* The longest that text[0..len) begins with: those that it begins with are before it in the
 * order, each a beginning of the next longer. */
static const struct added_token *longest_at(const struct added_tokens *a, const char *text,
					    size_t len, bool normalized)
{
	const struct added_token *found = NULL;
	size_t low = 0, high = a->count;

	/* One byte more at a time narrows the range of those that begin so. */
	for (size_t n = 0; n < len && low < high; n++) {
		unsigned char c = (unsigned char)text[n];
		size_t from = low, to = high;
		while (from < to) { /* the first with a byte here that is not below c */
			size_t middle = (from + to) / 2;
			const struct added_token *t = &a->token[middle];
			if (t->len <= n || (unsigned char)t->text[n] < c)
				from = middle + 1;
			else
				to = middle;
		}
		low = from;
		to = high;
		while (from < to) { /* the first above it */
			size_t middle = (from + to) / 2;
			if ((unsigned char)a->token[middle].text[n] <= c)
				from = middle + 1;
			else
				to = middle;
		}
		high = from;
		for (size_t i = low; i < high && a->token[i].len == n + 1; i++)
			if (a->token[i].normalized == normalized)
				found = &a->token[i];
	}
	return found;
}

/* As Hugging Face's library asks its regular expressions: a digit, but no fraction. */
static bool is_word_character(const struct added_tokens *a, const unsigned char *at,
			      const unsigned char *end)
{
	unsigned width;
	bool is_word = false;

	if (unicode_decode(at, end, &width) != UNI_BAD)
		split_regex_piece(a->word, at, at + width, &is_word);
	return is_word;
}

/* The character that ends right before `at`. */
static uint32_t character_before(const unsigned char *text, size_t at, unsigned *width)
{
	for (unsigned back = 1; back <= 4 && back <= at; back++) {
		uint32_t c = unicode_decode(text + at - back, text + at, width);
		if (c != UNI_BAD && *width == back)
			return c;
	}
	*width = 1;
	return UNI_BAD;
}

static bool stands_alone(const struct added_tokens *a, const unsigned char *text, size_t len,
			 size_t start, size_t stop)
{
	unsigned width;

	if (start > 0 && character_before(text, start, &width) != UNI_BAD &&
	    is_word_character(a, text + start - width, text + start))
		return false;
	return stop == len || !is_word_character(a, text + stop, text + len);
}

static void take_white_space(const struct added_token *t, const unsigned char *text, size_t len,
			     size_t from, size_t *start, size_t *stop)
{
	unsigned width;

	while (t->left_strip && *start > from &&
	       (unicode_kinds_of[character_before(text, *start, &width)] & UNI_SPACE))
		*start -= width;
	if (*start < from)
		*start = from;
	while (t->right_strip && *stop < len &&
	       (unicode_kinds_of[unicode_decode(text + *stop, text + len, &width)] & UNI_SPACE))
		*stop += width;
}

bool added_tokens_next(const struct added_tokens *a, const char *text, size_t len, size_t from,
		       bool normalized, bool specials, size_t *start, size_t *stop,
		       const struct added_token **token)
{
	const bool *first = a->first[normalized];
	const unsigned char *bytes = (const unsigned char *)text;

	if (a->of_class[normalized] == 0)
		return false;
	for (size_t at = from; at < len; at++) {
		const struct added_token *t = first[bytes[at]] ? longest_at(a, text + at, len - at,
									    normalized)
							       : NULL;
		if (!t)
			continue;
		*start = at;
		*stop = at + t->len;
		/* what is passed over hides what lies within it, as elsewhere */
		if ((t->special && !specials) ||
		    (t->single_word && !stands_alone(a, bytes, len, *start, *stop))) {
			at = *stop - 1;
			continue;
		}
		take_white_space(t, bytes, len, from, start, stop);
		*token = t;
		return true;
	}
	return false;
}
