/* SPDX-License-Identifier: MIT */
/* added_tokens.h - tokens that are found in a text as they are written, before it is split. */
#ifndef LBWORKER_ADDED_TOKENS_H
#define LBWORKER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct split_regex;

struct added_token {
	/* as it stands in a text that was normalized, where it is looked for there; owned */
	char *text;
	size_t len;
	char *name; /* what it reads as, where that is another text; owned, or NULL */
	uint32_t id;
	bool special;
	bool normalized;              /* looked for in the normalized text */
	bool left_strip, right_strip; /* takes white space beside it along */
	bool single_word;             /* only where no word character is beside it */
};

struct added_tokens {              /* all zero: none */
	struct added_token *token; /* sorted by text once it is complete */
	size_t count;
	bool first[2][256]; /* first bytes, of those not normalized and those that are */
	size_t of_class[2];
	struct split_regex *word; /* of one character; owned, NULL where none is a single word */
};

void added_tokens_fini(struct added_tokens *a);
/* Takes a copy of `text`, and of `name`. */
void added_tokens_add(struct added_tokens *a, const struct added_token *token);
/* After the last one; two of the same text: the first one counts. */
int added_tokens_complete(struct added_tokens *a, struct err *err);
const struct added_token *added_tokens_named(const struct added_tokens *a, const char *name);
static inline const char *added_token_name(const struct added_token *t)
{
	return t->name ? t->name : t->text;
}
const struct added_token *added_tokens_with_id(const struct added_tokens *a, uint32_t id);

/* The next one in text[from..len), of those that are normalized or those that are not; special
 * ones are only looked for when `specials`. False: none. *start and *stop are where it begins
 * and ends, with white space that belongs to it. */
bool added_tokens_next(const struct added_tokens *a, const char *text, size_t len, size_t from,
		       bool normalized, bool specials, size_t *start, size_t *stop,
		       const struct added_token **token);

#endif
