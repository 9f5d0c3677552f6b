/* SPDX-License-Identifier: MIT */
/* text/ - from text to tokens and back: tokenizers, the texts that they read, and how one is
 * trained.
 * tokenizer.h - a tokenizer as others trained it: what it was written down as, one way to use
 * it.
 * Read are Hugging Face's tokenizer.json (BPE), tiktoken's files (*.tiktoken; Llama 3's and 4's
 * tokenizer.model) and SentencePiece's models of the BPE kind (tokenizer.model of Llama 2,
 * Mistral). The tokens are those of Hugging Face's tokenizers, tiktoken and SentencePiece. */
#ifndef LBWORKER_TOKENIZER_H
#define LBWORKER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/mem.h"

struct tokenizer;

enum { TOKENIZER_DIGEST_HEX = 32 };

/* `path` is a file, or a folder with one of the usual names in it. `pattern` names how a
 * tiktoken file splits ("gpt2", "llama3", …) where its size does not tell; else NULL. NULL with
 * one line in err. What makes it slower or may differ is warned of once. */
struct tokenizer *tokenizer_open(const char *path, const char *pattern, struct err *err);
void tokenizer_close(struct tokenizer *tokenizer); /* NULL is fine */

/* The digest of a tokenizer's file, in hex, without opening it. */
int tokenizer_file_digest(const char *path, char digest[TOKENIZER_DIGEST_HEX + 1], struct err *err);

/* The file in a folder that a tokenizer is in: owned by the caller; NULL when there is none. */
char *tokenizer_file_in(const char *folder);

/* One more than its highest number. */
size_t tokenizer_vocab(const struct tokenizer *tokenizer);
/* Hex digits that name the file's content, and the file itself. Borrowed. */
const char *tokenizer_digest(const struct tokenizer *tokenizer);
const char *tokenizer_path(const struct tokenizer *tokenizer);
/* The token of that name, special or not; -1 when there is none. */
int64_t tokenizer_find(const struct tokenizer *tokenizer, const char *name);
/* What ends a document: <|endoftext|>, <|end_of_text|>, </s> …; -1 when it has none. */
int64_t tokenizer_end_of_text(const struct tokenizer *tokenizer);

/* Adds the bytes that a token stands for, of special ones their name; false when it is none.
 * `begins`: nothing was written before it, so SentencePiece's first blank goes. */
bool tokenizer_put(const struct tokenizer *tokenizer, uint32_t token, bool begins, struct buf *out);

struct tokens {       /* all zero: empty */
	uint32_t *id; /* owned */
	size_t count, room;
};
void tokens_fini(struct tokens *tokens);
void tokens_add(struct tokens *tokens, uint32_t id);

/* What one thread needs to make tokens; borrows the tokenizer. */
struct encoder;
struct encoder *encoder_create(const struct tokenizer *tokenizer);
void encoder_destroy(struct encoder *encoder); /* NULL is fine */
/* Adds the tokens of text[0..len), which may be any bytes. The names of special tokens are text,
 * unless `specials`. */
int encoder_encode(struct encoder *encoder, const char *text, size_t len, bool specials,
		   struct tokens *out, struct err *err);

#endif
