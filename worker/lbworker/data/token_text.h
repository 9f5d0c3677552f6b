/* SPDX-License-Identifier: MIT */
/* token_text.h - what tokens read as: bytes themselves, a tokenizer's words (text/tokenizer.h), a
 * tokenizer file of llm.c, or their numbers. And the way back.
 *
 * llm.c's file (gpt2_tokenizer.bin, llama3_tokenizer.bin) says what each token stands for, which is
 * all it takes to write a text; to cut one into tokens takes the merges, which it does not hold. */
#ifndef LBWORKER_TOKEN_TEXT_H
#define LBWORKER_TOKEN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

enum { TOKEN_TEXT_BYTES = 256 }; /* a vocabulary of that size is taken for bytes */

struct token_text;

/* `path`: a tokenizer of any kind, which may have fewer tokens than the model. NULL: bytes where
 * the vocabulary is that small, numbers otherwise. NULL with err. */
struct token_text *token_text_open(const char *path, size_t vocab, struct err *err);
void token_text_close(struct token_text *text); /* NULL is fine */
/* `begins`: nothing was written before it. */
void token_text_put(const struct token_text *text, int32_t token, bool begins, FILE *to);
/* The tokens of words[0..len), all below the vocabulary; the caller frees. NULL with err: also
 * where they are not to be had. Names of special tokens in it are text. */
int32_t *token_text_tokens(const struct token_text *text, const char *words, size_t len,
			   size_t *count, struct err *err);
/* The token of that name; -1 when there is none. */
int64_t token_text_find(const struct token_text *text, const char *name);
/* What ends a document; -1: nothing does. */
int64_t token_text_end(const struct token_text *text);

/* "15, 3,7" as tokens below vocab; *count of them, the caller frees. NULL with err. */
int32_t *token_text_numbers(const char *list, size_t vocab, size_t *count, struct err *err);

#endif
