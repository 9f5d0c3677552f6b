/* SPDX-License-Identifier: MIT */
/* token_text.c - a tokenizer's words, or llm.c's file: 256 words (magic, version, tokens, ...),
 * then of each token a byte with its length, and its bytes. */
#include "worker/lbworker/data/token_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/text/tokenizer.h"

enum { HEADER_BYTES = 1024, MAX_FILE_BYTES = 64 << 20, MAX_TOKENS = 1 << 22 };
static const uint32_t MAGIC = 20240328;

struct token_text {
	size_t vocab;
	size_t known; /* tokens in the file; 0: there is none */
	char *file;
	const char **token;          /* length byte, then its bytes */
	struct tokenizer *tokenizer; /* NULL: one of the others */
};

static uint32_t word_at(const char *file, size_t index)
{
	const unsigned char *at = (const unsigned char *)file + 4 * index;

	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static int read_tokens(struct token_text *t, const char *path, struct err *err)
{
	size_t bytes = 0, at = HEADER_BYTES;

	t->file = file_read(path, MAX_FILE_BYTES, &bytes, err);
	if (!t->file)
		return -1;
	if (bytes < HEADER_BYTES || word_at(t->file, 0) != MAGIC)
		return err_set(err, ERR_USAGE, "%s: is no tokenizer file of llm.c", path);
	t->known = word_at(t->file, 2);
	if (t->known == 0 || t->known > MAX_TOKENS)
		return err_set(err, ERR_USAGE, "%s: %zu tokens cannot be", path, t->known);
	t->token = xcalloc(t->known, sizeof(char *));
	for (size_t i = 0; i < t->known; i++) {
		if (at >= bytes || at + 1 + (unsigned char)t->file[at] > bytes)
			return err_set(err, ERR_USAGE, "%s: is cut short at token %zu of %zu", path,
				       i, t->known);
		t->token[i] = t->file + at;
		at += 1 + (unsigned char)t->file[at];
	}
	return 0;
}

static bool is_llmc(const char *path)
{
	unsigned char start[4] = { 0 };
	FILE *in = fopen(path, "rbe");
	bool is_one = in && fread(start, sizeof(start), 1, in) == 1 &&
		      word_at((const char *)start, 0) == MAGIC;

	if (in)
		fclose(in);
	return is_one;
}

static int open_tokenizer(struct token_text *t, const char *path, struct err *err)
{
	t->tokenizer = tokenizer_open(path, NULL, err);
	if (!t->tokenizer)
		return -1;
	if (tokenizer_vocab(t->tokenizer) <= t->vocab)
		return 0;
	return err_set(err, ERR_USAGE, "%s: has %zu tokens, the model %zu: it is another model's",
		       path, tokenizer_vocab(t->tokenizer), t->vocab);
}

struct token_text *token_text_open(const char *path, size_t vocab, struct err *err)
{
	struct token_text *t = xcalloc(1, sizeof(*t));

	t->vocab = vocab;
	if (!path ||
	    (is_llmc(path) ? read_tokens(t, path, err) : open_tokenizer(t, path, err)) == 0)
		return t;
	token_text_close(t);
	return NULL;
}

void token_text_close(struct token_text *t)
{
	if (!t)
		return;
	free(t->file);
	free(t->token);
	tokenizer_close(t->tokenizer);
	free(t);
}

static void put_word(const struct token_text *t, int32_t token, bool begins, FILE *to)
{
	struct buf word;

	buf_init(&word, MAX_FILE_BYTES);
	if (tokenizer_put(t->tokenizer, (uint32_t)token, begins, &word))
		fwrite(word.data, 1, word.len, to);
	else
		fprintf(to, "<%" PRId32 ">", token);
	buf_fini(&word);
}

void token_text_put(const struct token_text *t, int32_t token, bool begins, FILE *to)
{
	if (t->tokenizer) {
		put_word(t, token, begins, to);
		return;
	}
	if (t->known > (size_t)token)
		fwrite(t->token[token] + 1, 1, (unsigned char)t->token[token][0], to);
	else if (t->known == 0 && t->vocab == TOKEN_TEXT_BYTES)
		putc(token, to);
	else /* a vocabulary may be padded beyond its tokenizer */
		fprintf(to, "%s%" PRId32 "%s", t->known ? "<" : "", token, t->known ? ">" : " ");
}

static int32_t *words_of(const struct token_text *t, const char *words, size_t len, size_t *count,
			 struct err *err)
{
	struct encoder *e = encoder_create(t->tokenizer);
	struct tokens tokens = { 0 };
	int32_t *out = NULL;

	if (encoder_encode(e, words, len, false, &tokens, err) == 0) {
		out = xcalloc(tokens.count + 1, sizeof(*out));
		for (size_t i = 0; i < tokens.count; i++)
			out[i] = (int32_t)tokens.id[i];
		*count = tokens.count;
	}
	tokens_fini(&tokens);
	encoder_destroy(e);
	return out;
}

int32_t *token_text_tokens(const struct token_text *t, const char *words, size_t len, size_t *count,
			   struct err *err)
{
	if (t->tokenizer)
		return words_of(t, words, len, count, err);
	if (t->known > 0 || t->vocab != TOKEN_TEXT_BYTES) {
		err_set(err, ERR_USAGE,
			"a text needs a tokenizer, and there is none beside the model: give "
			"--tokenizer FILE "
			"(tokenizer.json, tokenizer.model), or --prompt-tokens");
		return NULL;
	}
	int32_t *out = xcalloc(len + 1, sizeof(*out));
	for (*count = 0; *count < len; ++*count)
		out[*count] = (unsigned char)words[*count];
	return out;
}

int64_t token_text_find(const struct token_text *t, const char *name)
{
	return t->tokenizer ? tokenizer_find(t->tokenizer, name) : -1;
}

int64_t token_text_end(const struct token_text *t)
{
	return t->tokenizer ? tokenizer_end_of_text(t->tokenizer) : -1;
}

int32_t *token_text_numbers(const char *list, size_t vocab, size_t *count, struct err *err)
{
	int32_t *out = xmalloc((strlen(list) + 1) * sizeof(*out));
	const char *at = list + strspn(list, " ,");

	for (*count = 0; *at; at += strspn(at, " ,")) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);
		if (end == at || *at == '-' || number >= vocab) {
			err_set(err, ERR_USAGE, "\"%.20s\": tokens are numbers below %zu", at,
				vocab);
			free(out);
			return NULL;
		}
		out[(*count)++] = (int32_t)number;
		at = end;
	}
	if (*count > 0)
		return out;
	err_set(err, ERR_USAGE, "there is no token to begin with");
	free(out);
	return NULL;
}
