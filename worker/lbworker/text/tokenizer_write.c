/* SPDX-License-Identifier: MIT */
/* tokenizer_write.c - tokenizer.json, byte-level BPE, with what Hugging Face's library wants to
 * find in it. */
#include "worker/lbworker/text/tokenizer_write.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbworker/text/tokenizer_parts.h"
#include "worker/lbworker/unicode/unicode.h"

enum { MODE = 0644 };

/* The token's name: special ones as they are, others byte by byte as characters that can be
 * seen. */
static char *name_of(const struct bpe_trained *t, uint32_t token, size_t specials)
{
	uint16_t character[256];
	size_t len, at = 0;
	const char *bytes = vocabulary_bytes(&t->vocabulary, token, &len);

	if (token < specials)
		return xstrndup(bytes, len);
	tokenizer_alphabet(character);
	unsigned char *name = xmalloc(2 * len + 1);
	for (size_t i = 0; i < len; i++)
		at += unicode_encode(character[(unsigned char)bytes[i]], name + at);
	name[at] = '\0';
	return (char *)name;
}

static json_t *byte_level(bool splits)
{
	return json_pack("{sssbsbsb}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
			 1, "use_regex", (int)splits);
}

static json_t *pre_tokenizer(const char *pattern)
{
	if (!pattern)
		return byte_level(true);
	return json_pack("{sss[{sss{ss}sssb}o]}", "type", "Sequence", "pretokenizers", "type",
			 "Split", "pattern", "Regex", pattern, "behavior", "Isolated", "invert", 0,
			 byte_level(false));
}

static json_t *model(const struct bpe_trained *t, size_t specials)
{
	json_t *vocab = json_object(), *merges = json_array();

	for (uint32_t i = 0; i < t->vocabulary.count; i++) {
		char *name = name_of(t, i, specials);
		json_object_set_new(vocab, name, json_integer(i));
		free(name);
	}
	for (size_t i = 0; i < t->merges; i++) {
		char *left = name_of(t, t->merge[i].left, specials);
		char *right = name_of(t, t->merge[i].right, specials);
		json_array_append_new(merges, json_pack("[ss]", left, right));
		free(left);
		free(right);
	}
	return json_pack("{sssnsnsnsnsbsbsbsoso}", "type", "BPE", "dropout", "unk_token",
			 "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
			 "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
}

static json_t *added_tokens(const struct bpe_trained *t, size_t specials)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < specials; i++) {
		char *name = name_of(t, i, specials);
		json_array_append_new(list, json_pack("{sisssbsbsbsbsb}", "id", (int)i, "content",
						      name, "single_word", 0, "lstrip", 0, "rstrip",
						      0, "normalized", 0, "special", 1));
		free(name);
	}
	return list;
}

/* Two tokens of one name would leave a number without one, and no library reads that. */
static int check_names(const json_t *document, const struct bpe_trained *t, struct err *err)
{
	const json_t *vocab = json_object_get(json_object_get(document, "model"), "vocab");

	if (json_object_size(vocab) == t->vocabulary.count)
		return 0;
	return err_set(
		err, ERR_USAGE,
		"a special token has the name of one that texts are made of: give it another");
}

int tokenizer_write(const char *path, const struct bpe_trained *t, size_t specials,
		    const char *pattern, struct err *err)
{
	json_t *o = json_pack("{sssnsnsosnsosnsoso}", "version", "1.0", "truncation", "padding",
			      "added_tokens", added_tokens(t, specials), "normalizer",
			      "pre_tokenizer", pre_tokenizer(pattern), "post_processor", "decoder",
			      byte_level(true), "model", model(t, specials));
	char *text = o && check_names(o, t, err) == 0 ? json_dumps(o, JSON_INDENT(1)) : NULL;
	int rc = text ? file_write_named(path, text, strlen(text), MODE, err)
		      : err_set(err, ERR_INTERNAL, "%s: the tokenizer is no JSON", path);

	free(text);
	json_decref(o);
	return rc;
}
