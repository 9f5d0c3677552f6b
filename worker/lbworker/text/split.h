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
	SPLIT_NOTHING,   /* the text is one word */
	SPLIT_GPT2,      /* letters, numbers, others, each with a blank in front */
	SPLIT_CL100K,    /* one character of another kind in front; numbers in threes */
	SPLIT_O200K,     /* letters also where upper case begins again */
	SPLIT_DIGITS,    /* numbers, and what is between them */
	SPLIT_META,      /* before each U+2581, which stands for a blank */
	SPLIT_META_RUNS, /* the same, but not between several of them */
	SPLIT_REGEX,
};

struct split {
	enum split_kind kind;
	unsigned digits;           /* CL100K, O200K, DIGITS: at most so many in a word */
	bool joins_end;            /* CL100K: white space at the end of the text is one word */
	bool contractions;         /* O200K: 's and the like stay with their word */
	struct split_regex *regex; /* borrowed */
};

/* A pattern that is known by its text: its kind and options. */
bool split_known(struct split *out, const char *pattern);
/* "gpt2", "cl100k", "llama3", "o200k", "qwen2", "tekken"; *names lists them when there is none. */
bool split_named(struct split *out, const char *name, const char **names);

/* The pattern of that name, as a regular expression; NULL when there is none. */
const char *split_pattern(const char *name);

/* Behind the last byte of the word that begins at `at`, which is before `end`, the text's. NULL:
 * PCRE2 gave up. REGEX wants UTF-8, the others take any bytes. */
const unsigned char *split_word(const struct split *split, const unsigned char *at,
				const unsigned char *end);

#endif
