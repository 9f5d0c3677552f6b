/* SPDX-License-Identifier: MIT */
/* split.c - each pattern as a function from the beginning of a word to its end. The alternatives
 * stand in the order of the pattern, and give back what a backtracking engine would give back. Then
 * what becomes of matches and of what lies between them. */
#include "worker/lbworker/unicode/split.h"

#include <string.h>

#include "worker/lbworker/unicode/split_regex.h"
#include "worker/lbworker/unicode/unicode.h"

typedef const unsigned char *place;

/* --- patterns by their text ----------------------------------------------------------------- */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end) \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER \
	"*" end
#define LINES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct known {
	const char *name; /* NULL: only by its text */
	struct split split;
	const char *pattern;
} known[] = {
	{ "gpt2",
	  { .kind = SPLIT_GPT2 },
	  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
	{ NULL,
	  { .kind = SPLIT_GPT2 },
	  "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| "
	  "?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s" },
	{ "llama3",
	  { .kind = SPLIT_CL100K, .digits = 3 },
	  CONTRACTIONS
	  "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINES },
	{ "qwen2",
	  { .kind = SPLIT_CL100K, .digits = 1 },
	  CONTRACTIONS
	  "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINES },
	{ "cl100k",
	  { .kind = SPLIT_CL100K, .digits = 3, .joins_end = true },
	  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| "
	  "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s" },
	{ "o200k",
	  { .kind = SPLIT_O200K, .digits = 3, .contractions = true },
	  CASED(CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES },
	{ "tekken",
	  { .kind = SPLIT_O200K, .digits = 1 },
	  CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES },
};
enum { KNOWN = sizeof(known) / sizeof(known[0]) };

bool split_known(struct split *out, const char *pattern)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (strcmp(known[i].pattern, pattern) == 0) {
			*out = known[i].split;
			return true;
		}
	return false;
}

bool split_named(struct split *out, const char *name, const char **names)
{
	*names = "gpt2, llama3, qwen2, cl100k, o200k, tekken";
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].name && strcmp(known[i].name, name) == 0) {
			*out = known[i].split;
			return true;
		}
	return false;
}

const char *split_pattern(const char *name)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].name && strcmp(known[i].name, name) == 0)
			return known[i].pattern;
	return NULL;
}

/* --- runs of characters --------------------------------------------------------------------- */

static inline unsigned kind_at(place at, place end, unsigned *width)
{
	return unicode_kinds_of[unicode_decode(at, end, width)];
}

/* Past all characters of these kinds. */
static inline place skip(place at, place end, unsigned kinds)
{
	unsigned width;

	while (at < end && (kind_at(at, end, &width) & kinds))
		at += width;
	return at;
}

/* Past all that are of none of them. */
static inline place skip_others(place at, place end, unsigned kinds)
{
	unsigned width;

	while (at < end && !(kind_at(at, end, &width) & kinds))
		at += width;
	return at;
}

static inline place skip_some(place at, place end, unsigned kinds, unsigned most)
{
	unsigned width;

	for (unsigned n = 0; at < end && n < most && (kind_at(at, end, &width) & kinds); n++)
		at += width;
	return at;
}

static inline bool is_line_end(unsigned char c)
{
	return c == '\r' || c == '\n';
}

/* 's 't 're 've 'm 'll 'd at `at`; 0, or its bytes. Without regard to case U+017F is an s, too. */
static unsigned contraction(place at, place end, bool any_case)
{
	size_t left = (size_t)(end - at);
	unsigned fold = any_case ? 0x20 : 0;

	if (left < 2 || *at != '\'')
		return 0;
	switch (at[1] | fold) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		return 2;
	case 'r':
	case 'v':
		return left > 2 && (at[2] | fold) == 'e' ? 3 : 0;
	case 'l':
		return left > 2 && (at[2] | fold) == 'l' ? 3 : 0;
	default:
		return any_case && left > 2 && at[1] == 0xC5 && at[2] == 0xBF ? 3 : 0;
	}
}

/* \s*[\r\n]+|\s+(?!\S)|\s+, the first of these only where it is asked for; `at` is at white
 * space. With joins_end what ends the text stays whole. */
static place white_space(place at, place end, bool by_lines, bool joins_end)
{
	unsigned width;
	place stop = at, last = at, line = NULL;

	while (stop < end && (kind_at(stop, end, &width) & UNI_SPACE)) {
		last = stop;
		stop += width;
		if (is_line_end(*last))
			line = stop;
	}
	if (by_lines && line && !(joins_end && stop == end))
		return line;
	return stop == end || last == at ? stop : last; /* the last one goes with the next word */
}

/* --- GPT-2 ---------------------------------------------------------------------------------- */

static place gpt2_word(place at, place end)
{
	unsigned width, kind;
	unsigned count = contraction(at, end, false);

	if (count)
		return at + count;
	place next = *at == ' ' && at + 1 < end ? at + 1 : at;
	kind = kind_at(next, end, &width);
	if (kind & UNI_LETTER)
		return skip(next + width, end, UNI_LETTER);
	if (kind & UNI_NUMBER)
		return skip(next + width, end, UNI_NUMBER);
	if (!(kind & UNI_SPACE))
		return skip_others(next + width, end, UNI_SPACE | UNI_LETTER | UNI_NUMBER);
	return white_space(at, end, false, false);
}

/* --- cl100k, Llama 3, Qwen ------------------------------------------------------------------ */

/* ` ?[^\s\p{L}\p{N}]+` and line ends (and slashes) behind it; NULL when there is none. */
static place others_word(place at, place end, bool slashes)
{
	place next = *at == ' ' && at + 1 < end ? at + 1 : at;
	place stop = skip_others(next, end, UNI_SPACE | UNI_LETTER | UNI_NUMBER);

	if (stop == next)
		return NULL;
	while (stop < end && (is_line_end(*stop) || (slashes && *stop == '/')))
		stop++;
	return stop;
}

static place cl100k_word(const struct split *s, place at, place end)
{
	unsigned width, next_width;
	unsigned count = contraction(at, end, true);

	if (count)
		return at + count;
	unsigned kind = kind_at(at, end, &width);
	if (kind & UNI_LETTER)
		return skip(at + width, end, UNI_LETTER);
	if (kind & UNI_NUMBER)
		return skip_some(at + width, end, UNI_NUMBER, s->digits - 1);
	if (!is_line_end(*at) && at + width < end &&
	    (kind_at(at + width, end, &next_width) & UNI_LETTER))
		return skip(at + width + next_width, end, UNI_LETTER);
	place stop = others_word(at, end, false);
	return stop ? stop : white_space(at, end, true, s->joins_end);
}

/* --- o200k, tekken -------------------------------------------------------------------------- */

enum {
	LIKE_UPPER = UNI_UPPER | UNI_CASELESS | UNI_MARK,
	LIKE_LOWER = UNI_LOWER | UNI_CASELESS | UNI_MARK
};

/* UPPER*LOWER+ from `at`; NULL when it does not match. */
static place lower_word(place at, place end)
{
	unsigned width, kind;
	place stop = at, caseless = NULL, behind = NULL;

	for (; stop < end && ((kind = kind_at(stop, end, &width)) & LIKE_UPPER); stop += width)
		if (kind & LIKE_LOWER) { /* the last one could be the LOWER */
			caseless = stop;
			behind = stop + width;
		}
	if (stop < end && (kind_at(stop, end, &width) & UNI_LOWER))
		return skip(stop, end, LIKE_LOWER);
	return caseless ? behind : NULL;
}

static place cased_word(place at, place end)
{
	unsigned width;
	unsigned kind = kind_at(at, end, &width);
	bool may_lead = !(kind & (UNI_LETTER | UNI_NUMBER)) && !is_line_end(*at);
	place next = at + width, stop = NULL;

	if (may_lead && next < end)
		stop = lower_word(next, end);
	if (!stop)
		stop = lower_word(at, end);
	if (stop)
		return stop;
	place upper = may_lead ? skip(next, end, LIKE_UPPER) : next;
	if (may_lead && upper > next)
		return skip(upper, end, LIKE_LOWER);
	upper = skip(at, end, LIKE_UPPER);
	return upper > at ? skip(upper, end, LIKE_LOWER) : NULL;
}

static place o200k_word(const struct split *s, place at, place end)
{
	unsigned width;
	place stop = cased_word(at, end);

	if (stop)
		return s->contractions && stop < end ? stop + contraction(stop, end, true) : stop;
	if (kind_at(at, end, &width) & UNI_NUMBER)
		return skip_some(at + width, end, UNI_NUMBER, s->digits - 1);
	stop = others_word(at, end, true);
	return stop ? stop : white_space(at, end, true, false);
}

/* --- the others ----------------------------------------------------------------------------- */

static bool is_meta(place at, place end)
{
	return end - at >= 3 && at[0] == 0xE2 && at[1] == 0x96 && at[2] == 0x81;
}

static place meta_word(const struct split *s, place at, place end)
{
	if (s->kind == SPLIT_META && is_meta(at, end))
		at += 3;
	while (s->kind == SPLIT_META_RUNS && is_meta(at, end))
		at += 3;
	for (;;) {
		place next = at < end ? memchr(at, 0xE2, (size_t)(end - at)) : NULL;
		if (!next)
			return end;
		if (is_meta(next, end))
			return next;
		at = next + 1;
	}
}

/* A character of those kinds, or all up to the next one. */
static place character_piece(const struct split *s, place at, place end, bool *is_match)
{
	unsigned width;

	*is_match = (kind_at(at, end, &width) & s->kinds) != 0;
	return *is_match ? at + width : skip_others(at, end, s->kinds);
}

static place text_piece(const struct split *s, place at, place end, bool *is_match)
{
	size_t len = strlen(s->text);
	place next = memmem(at, (size_t)(end - at), s->text, len);

	*is_match = next == at;
	return !next ? end : *is_match ? at + len : next;
}

/* A match at `at`, or all up to the next one; NULL: PCRE2 gave up. */
static place piece(const struct split *s, place at, place end, bool *is_match)
{
	place stop = end;

	*is_match = true;
	switch (s->kind) {
	case SPLIT_GPT2:
		stop = gpt2_word(at, end);
		break;
	case SPLIT_CL100K:
		stop = cl100k_word(s, at, end);
		break;
	case SPLIT_O200K:
		stop = o200k_word(s, at, end);
		break;
	case SPLIT_META:
	case SPLIT_META_RUNS:
		stop = meta_word(s, at, end);
		break;
	case SPLIT_CHARACTERS:
		stop = character_piece(s, at, end, is_match);
		break;
	case SPLIT_TEXT:
		stop = text_piece(s, at, end, is_match);
		break;
	case SPLIT_REGEX:
		stop = split_regex_piece(s->regex, at, end, is_match);
		break;
	case SPLIT_NOTHING:
		break;
	}
	*is_match ^= s->inverts;
	return stop;
}

/* Behind the neighbours of a piece that are of its sort. */
static place contiguous(const struct split *s, place stop, place end, bool is_match)
{
	while (stop && stop < end) {
		bool next_matches;
		place next = piece(s, stop, end, &next_matches);
		if (next && next_matches != is_match)
			break;
		stop = next;
	}
	return stop;
}

const unsigned char *split_word(const struct split *s, const unsigned char *at,
				const unsigned char *end, bool *is_left_out)
{
	bool is_match, next_matches;
	place stop = piece(s, at, end, &is_match);

	bool joins = (s->behavior == SPLIT_MERGED_WITH_PREVIOUS && !is_match) ||
		     (s->behavior == SPLIT_MERGED_WITH_NEXT && is_match);

	*is_left_out = s->behavior == SPLIT_REMOVED && is_match;
	if (s->behavior == SPLIT_CONTIGUOUS)
		return contiguous(s, stop, end, is_match);
	if (!joins || !stop || stop == end)
		return stop;
	place next = piece(s, stop, end, &next_matches);
	return !next || next_matches != is_match ? next : stop;
}
