/* SPDX-License-Identifier: MIT */
/* token_text.c - llm.c's file: 256 words (magic, version, tokens, ...), then of each token a byte
 * with its length, and its bytes. */
#include "worker/lbworker/data/token_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"

enum { HEADER_BYTES = 1024, MAX_FILE_BYTES = 64 << 20, MAX_TOKENS = 1 << 22 };
static const uint32_t MAGIC = 20240328;

struct token_text {
	size_t vocab;
	size_t known; /* tokens in the file; 0: there is none */
	char *file;
	const char **token; /* length byte, then its bytes */
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

struct token_text *token_text_open(const char *path, size_t vocab, struct err *err)
{
	struct token_text *t = xcalloc(1, sizeof(*t));

	t->vocab = vocab;
	if (!path || read_tokens(t, path, err) == 0)
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
	free(t);
}

void token_text_put(const struct token_text *t, int32_t token, FILE *to)
{
	if (t->known > (size_t)token)
		fwrite(t->token[token] + 1, 1, (unsigned char)t->token[token][0], to);
	else if (t->known == 0 && t->vocab == TOKEN_TEXT_BYTES)
		putc(token, to);
	else /* a vocabulary may be padded beyond its tokenizer */
		fprintf(to, "%s%" PRId32 "%s", t->known ? "<" : "", token, t->known ? ">" : " ");
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
