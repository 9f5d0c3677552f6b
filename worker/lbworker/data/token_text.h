/* SPDX-License-Identifier: MIT */
/* token_text.h - what tokens read as: bytes themselves, a tokenizer file of llm.c, or their
 * numbers.
 *
 * The file (gpt2_tokenizer.bin, llama3_tokenizer.bin) says what each token stands for, which is all
 * it takes to write a text; to cut one into tokens takes the merges, which it does not hold. */
#ifndef LBWORKER_TOKEN_TEXT_H
#define LBWORKER_TOKEN_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

enum { TOKEN_TEXT_BYTES = 256 }; /* a vocabulary of that size is taken for bytes */

struct token_text;

/* `path` NULL: bytes where the vocabulary is that small, numbers otherwise. NULL with err. */
struct token_text *token_text_open(const char *path, size_t vocab, struct err *err);
void token_text_close(struct token_text *text); /* NULL is fine */
void token_text_put(const struct token_text *text, int32_t token, FILE *to);

/* "15, 3,7" as tokens below vocab; *count of them, the caller frees. NULL with err. */
int32_t *token_text_numbers(const char *list, size_t vocab, size_t *count, struct err *err);

#endif
