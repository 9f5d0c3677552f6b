/* SPDX-License-Identifier: MIT */
/* tokenizer.c - opens a file of whichever format it is of; what tokens stand for. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/unicode/split_regex.h"
#include "worker/lbworker/unicode/unicode.h"

enum { MAX_FILE_BYTES = 128 << 20 };

char *tokenizer_file_in(const char *folder)
{
	static const char *const names[] = { "tokenizer.json", "tokenizer.model",
					     "tokenizer.tiktoken", "tekken.json" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = path_join("%s/%s", folder, names[i]);
		if (file_exists(path))
			return path;
		free(path);
	}
	return NULL;
}

static void name_content(char *out, const char *text, size_t len)
{
	XXH128_canonical_t digest;

	XXH128_canonicalFromHash(&digest, XXH3_128bits(text, len));
	for (size_t i = 0; i < sizeof(digest.digest); i++)
		snprintf(out + 2 * i, 3, "%02x", digest.digest[i]);
}

int tokenizer_file_digest(const char *path, char digest[TOKENIZER_DIGEST_HEX + 1], struct err *err)
{
	size_t len = 0;
	char *text = file_read(path, MAX_FILE_BYTES, &len, err);

	if (!text)
		return -1;
	name_content(digest, text, len);
	free(text);
	return 0;
}

/* By its first byte: JSON is an object; a message of SentencePiece begins with the field
 * `pieces`; tiktoken's lines are base64. */
static int read_any(struct tokenizer *t, const char *text, size_t len, const char *pattern,
		    struct err *err)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (at < len && text[at] == '{' && tokenizer_is_tekken(text, len))
		return tokenizer_read_tekken(t, text, len, pattern, err);
	if (at < len && text[at] == '{')
		return tokenizer_read_json(t, text, len, err);
	if (len > 0 && text[0] == 0x0A)
		return tokenizer_read_sentencepiece(t, text, len, err);
	return tokenizer_read_tiktoken(t, text, len, pattern, err);
}

static int check(const struct tokenizer *t, struct err *err)
{
	if (t->vocabulary.count == 0)
		return err_set(err, ERR_USAGE, "holds no tokens");
	return 0;
}

static int read_file(struct tokenizer *t, const char *pattern, struct err *err)
{
	size_t len = 0;
	char *text = file_read(t->path, MAX_FILE_BYTES, &len, err);
	int rc = -1;

	if (text) {
		name_content(t->digest, text, len);
		rc = read_any(t, text, len, pattern, err) || check(t, err) ||
				     added_tokens_complete(&t->added, err)
			     ? -1
			     : 0;
	}
	free(text);
	return rc ? err_wrap(err, "%s", t->path) : 0;
}

struct tokenizer *tokenizer_open(const char *path, const char *pattern, struct err *err)
{
	struct tokenizer *t = xcalloc(1, sizeof(*t));
	struct stat st;

	unicode_init();
	t->bpe = bpe_create();
	t->unknown = NO_TOKEN;
	memset(t->byte, 0xFF, sizeof(t->byte));
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		t->path = tokenizer_file_in(path);
		if (!t->path)
			err_set(err, ERR_NOT_FOUND,
				"%s: holds no tokenizer.json, tokenizer.model, "
				"tokenizer.tiktoken, nor tekken.json",
				path);
	} else {
		t->path = xstrdup(path);
	}
	if (t->path && read_file(t, pattern, err) == 0)
		return t;
	tokenizer_close(t);
	return NULL;
}

void tokenizer_close(struct tokenizer *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->regexes; i++)
		split_regex_destroy(t->regex[i]);
	for (size_t i = 0; i < t->texts; i++)
		free(t->text[i]);
	added_tokens_fini(&t->added);
	vocabulary_fini(&t->vocabulary);
	bpe_destroy(t->bpe);
	free(t->path);
	free(t);
}

size_t tokenizer_vocab(const struct tokenizer *t)
{
	size_t count = t->vocabulary.count;

	for (size_t i = 0; i < t->added.count; i++)
		if (t->added.token[i].id >= count)
			count = (size_t)t->added.token[i].id + 1;
	return count;
}

const char *tokenizer_digest(const struct tokenizer *t)
{
	return t->digest;
}

const char *tokenizer_path(const struct tokenizer *t)
{
	return t->path;
}

int64_t tokenizer_find(const struct tokenizer *t, const char *name)
{
	const struct added_token *added = added_tokens_named(&t->added, name);

	if (added)
		return added->id;
	for (size_t i = 0; i < t->vocabulary.count; i++) {
		size_t len;
		const char *bytes = vocabulary_bytes(&t->vocabulary, (uint32_t)i, &len);
		if (bytes && len == strlen(name) && memcmp(bytes, name, len) == 0)
			return (int64_t)i;
	}
	return -1;
}

int64_t tokenizer_end_of_text(const struct tokenizer *t)
{
	static const char *const names[] = {
		"<|endoftext|>", "<|end_of_text|>",
		"</s>",          "<eos>",
		"<EOT>",         "<|eos|>",
		"[EOS]",         "<\uFF5Cend\u2581of\u2581sentence\uFF5C>", /* DeepSeek's */
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct added_token *a = added_tokens_named(&t->added, names[i]);
		if (a)
			return a->id;
	}
	return -1;
}

/* "<0x0A>" is the byte 10. */
static bool is_byte(const struct tokenizer *t, uint32_t token, const char *bytes, size_t len,
		    unsigned char *byte)
{
	enum { BYTE_TOKEN_BYTES = 6 };

	if (!t->byte_fallback || len != BYTE_TOKEN_BYTES || memcmp(bytes, "<0x", 3) != 0)
		return false;
	*byte = (unsigned char)strtoul(bytes + 3, NULL, 16);
	return t->byte[*byte] == token;
}

/* U+2581 is a blank again; the first one of a text was not in it, or all that its first token
 * has. */
static int put_blanks(const struct tokenizer *t, const char *bytes, size_t len, bool begins,
		      struct buf *out)
{
	static const char meta[] = "\xE2\x96\x81";
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < len;) {
		bool is_meta = len - at >= 3 && memcmp(bytes + at, meta, 3) == 0;
		bool is_added = begins && (t->first_blank == BLANKS_DROPPED ||
					   (at == 0 && t->first_blank == BLANK_DROPPED));
		if (!is_meta)
			rc = buf_add(out, bytes + at, 1);
		else if (!is_added)
			rc = buf_add(out, " ", 1);
		at += is_meta ? 3 : 1;
	}
	return rc;
}

bool tokenizer_put(const struct tokenizer *t, uint32_t token, bool begins, struct buf *out)
{
	const struct added_token *a = added_tokens_with_id(&t->added, token);
	unsigned char byte;
	size_t len;

	if (a)
		return buf_add(out, added_token_name(a), strlen(added_token_name(a))) == 0;
	const char *bytes = vocabulary_bytes(&t->vocabulary, token, &len);
	if (!bytes)
		return false;
	if (is_byte(t, token, bytes, len, &byte))
		return buf_add(out, &byte, 1) == 0;
	if (t->meta)
		return put_blanks(t, bytes, len, begins, out) == 0;
	return buf_add(out, bytes, len) == 0;
}
