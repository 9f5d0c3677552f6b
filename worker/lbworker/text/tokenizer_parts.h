/* SPDX-License-Identifier: MIT */
/* tokenizer_parts.h - what a tokenizer consists of: for those who read one, and the one who uses
 * it. */
#ifndef LBWORKER_TOKENIZER_PARTS_H
#define LBWORKER_TOKENIZER_PARTS_H

#include "worker/lbworker/text/added_tokens.h"
#include "worker/lbworker/text/bpe.h"
#include "worker/lbworker/unicode/split.h"
#include "worker/lbworker/text/tokenizer.h"
#include "worker/lbworker/text/vocabulary.h"

enum {
	SPLITS_MAX = 8,
	STEPS_MAX = 8,
	REGEXES_MAX = SPLITS_MAX + STEPS_MAX,
	TEXTS_MAX = SPLITS_MAX + 2 * STEPS_MAX
};

enum meta_prefix { META_NEVER, META_FIRST, META_ALWAYS };

/* What becomes of a text before it is split: steps, in order, and then blanks. */
struct normal_step {
	enum { NORMAL_NFC, NORMAL_REPLACE, NORMAL_PREPEND, NORMAL_STRIP } kind;
	struct split what; /* REPLACE: SPLIT_REMOVED */
	const char *text;  /* REPLACE, PREPEND: borrowed */
	bool left, right;  /* STRIP: white space there */
};

struct tokenizer {
	char *path;
	char digest[TOKENIZER_DIGEST_HEX + 1];
	struct vocabulary vocabulary; /* bytes; added tokens are not in it */
	struct added_tokens added;
	struct bpe *bpe;
	bool by_bytes;      /* words begin as bytes; else as characters */
	bool ignore_merges; /* a word that is a token is that token */
	bool byte_fallback, fuse_unknown;
	uint32_t byte[256]; /* the token of a single byte, or NO_TOKEN */
	uint32_t unknown;

	struct normal_step step[STEPS_MAX];
	size_t steps;
	bool prefix_blank; /* one in front of a text that has none */
	bool meta;         /* U+2581 for blanks */
	bool meta_is_late; /* once added tokens were found, in each piece between them */
	enum meta_prefix meta_prefix;
	bool meta_doubles;              /* in front of those that begin with one, too */
	struct split split[SPLITS_MAX]; /* each cuts the words of the one before */
	size_t splits;
	/* When tokens are read: the blank that begins a text, or all those in its first token. */
	enum { BLANK_KEPT, BLANK_DROPPED, BLANKS_DROPPED } first_blank;

	struct split_regex *regex[REGEXES_MAX]; /* owned: what splits and steps borrow */
	char *text[TEXTS_MAX];
	size_t regexes, texts;
};

/* *text[0..*len) becomes its normal form, in one of the buffers or as it is. -1 when there is
 * no room, or PCRE2 gave up. */
enum { NORMAL_BUFFERS = 2 };
int normal_form(const struct tokenizer *t, struct buf room[NORMAL_BUFFERS], const char **text,
		size_t *len);
/* Only blanks: U+2581 for each, and one in front where the tokenizer has it so. */
int normal_blanks(const struct tokenizer *t, bool is_first, struct buf *room, const char **text,
		  size_t *len);

/* A reader of one format fills *t, which is empty but for its path. */
int tokenizer_read_json(struct tokenizer *t, const char *text, size_t len, struct err *err);
int tokenizer_read_tiktoken(struct tokenizer *t, const char *text, size_t len, const char *pattern,
			    struct err *err);
/* Mistral's tekken.json; whether a text looks like one. */
bool tokenizer_is_tekken(const char *text, size_t len);
int tokenizer_read_tekken(struct tokenizer *t, const char *text, size_t len, const char *pattern,
			  struct err *err);
int tokenizer_read_sentencepiece(struct tokenizer *t, const char *text, size_t len,
				 struct err *err);

/* How GPT-2 writes each byte: as a character that can be seen, itself or one from U+0100 on. */
void tokenizer_alphabet(uint16_t character[256]);

/* For a vocabulary whose numbers are ranks: each way to make a token of two others is a pair.
 * `rank` is by token; NULL: the number itself. */
void tokenizer_pair_all(struct tokenizer *t, const uint32_t *rank);
/* Tokens of single bytes, once the vocabulary is there. */
void tokenizer_find_bytes(struct tokenizer *t);

/* Where no token joins something to a blank behind it, words may end there: the tokens are the
 * same, and words are met again. */
void tokenizer_cut_at_blanks(struct tokenizer *t);

#endif
