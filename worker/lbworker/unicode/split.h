/* SPDX-License-Identifier: MIT */
/* split.h - cuts a text into words before pairs are merged. The patterns of well-known
 * tokenizers are written by hand over unicode.h; any other one runs through PCRE2, slower, and
 * by its Unicode. */
#ifndef LBWORKER_SPLIT_H
#define LBWORKER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct split_regex; /* split_regex.h */

enum split_kind {
	SPLIT_NOTHING,    /* the text is one word */
	SPLIT_GPT2,       /* letters, numbers, others, each with a blank in front */
	SPLIT_CL100K,     /* one character of another kind in front; numbers in threes */
	SPLIT_O200K,      /* letters also where upper case begins again */
	SPLIT_META,       /* before each U+2581, which stands for a blank */
	SPLIT_META_RUNS,  /* the same, but not between several of them */
	SPLIT_CHARACTERS, /* each character of some kinds is a match */
	SPLIT_TEXT,       /* each occurrence of a text is one */
	SPLIT_REGEX,      /* each match of a pattern is one */
};

/* What becomes of matches, and of what lies between them: words of their own; matches are left out;
 * a match joins what is in front of it, or behind it, where that is no match; neighbours that are
 * both matches, or both none, are one word. */
enum split_behavior {
	SPLIT_ISOLATED,
	SPLIT_REMOVED,
	SPLIT_MERGED_WITH_PREVIOUS,
	SPLIT_MERGED_WITH_NEXT,
	SPLIT_CONTIGUOUS,
};

struct split {
	enum split_kind kind;
	enum split_behavior behavior;
	bool inverts;              /* what is no match counts as one, and the other way round */
	bool mapped;               /* sees each byte as tokenizer_alphabet() writes it */
	unsigned digits;           /* CL100K, O200K: at most so many in a word */
	bool joins_end;            /* CL100K: white space at the end of the text is one word */
	bool contractions;         /* O200K: 's and the like stay with their word */
	unsigned kinds;            /* CHARACTERS: enum unicode_kind */
	const char *text;          /* TEXT: borrowed, not empty */
	struct split_regex *regex; /* borrowed */
};

/* A pattern that is known by its text: its kind and options. */
bool split_known(struct split *out, const char *pattern);
/* "gpt2", "cl100k", "llama3", "o200k", "qwen2", "tekken"; *names lists them when there is none. */
bool split_named(struct split *out, const char *name, const char **names);

/* The pattern of that name, as a regular expression; NULL when there is none. */
const char *split_pattern(const char *name);

/* Behind the last byte of the word that begins at `at`, which is before `end`, the text's;
 * *is_left_out: it is none, and makes no tokens. NULL: PCRE2 gave up. REGEX wants UTF-8, the others
 * take any bytes. */
const unsigned char *split_word(const struct split *split, const unsigned char *at,
				const unsigned char *end, bool *is_left_out);

#endif
