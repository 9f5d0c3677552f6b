/* SPDX-License-Identifier: MIT */
/* tekken.c - Mistral's tekken.json: tokens as tiktoken has them (bytes in base64, by rank) in JSON,
 * behind special tokens that have the first numbers. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbworker/text/base64.h"

/* Files before version 7 do not list them. */
static const char *const first_specials[] = { "<unk>", "<s>", "</s>" };

bool tokenizer_is_tekken(const char *text, size_t len)
{
	return memmem(text, len, "\"default_num_special_tokens\"", 28) != NULL;
}

static int add_token(struct tokenizer *t, const json_t *entry, uint32_t rank, uint32_t specials,
		     struct err *err)
{
	const json_t *value = json_object_get(entry, "token_bytes");
	const char *text = json_string_value(value);
	size_t len = json_string_length(value), count = 0;
	char *bytes = xmalloc(len + 1);
	bool good = text && js_int(entry, "rank", -1) == (int64_t)rank &&
		    from_base64(text, len, bytes, &count) &&
		    vocabulary_find(&t->vocabulary, bytes, count) == NO_TOKEN &&
		    vocabulary_add(&t->vocabulary, specials + rank, bytes, count);

	free(bytes);
	return good ? 0
		    : err_set(err, ERR_USAGE,
			      "vocab %u: no token in base64 (token_bytes) with its place as rank",
			      rank);
}

static void add_special(struct tokenizer *t, const char *name, uint32_t id)
{
	char *text = xstrdup(name);
	const struct added_token token = {
		.text = text, .len = strlen(text), .id = id, .special = true
	};

	added_tokens_add(&t->added, &token);
	free(text);
}

static int add_specials(struct tokenizer *t, const json_t *list, uint32_t count, struct err *err)
{
	for (size_t i = 0; !list && i < sizeof(first_specials) / sizeof(first_specials[0]); i++)
		if (i < count)
			add_special(t, first_specials[i], (uint32_t)i);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const char *name = js_str(entry, "token_str", "");
		int64_t rank = js_int(entry, "rank", -1);
		if (name[0] == '\0' || rank < 0 || rank >= (int64_t)count)
			return err_set(err, ERR_USAGE,
				       "special_tokens %zu: needs a token_str, and a rank below %u",
				       i, count);
		add_special(t, name, (uint32_t)rank);
	}
	return 0;
}

static int take_pattern(struct tokenizer *t, const json_t *config, const char *named,
			struct err *err)
{
	const char *pattern = js_str(config, "pattern", ""), *names;

	if (named && !split_named(&t->split[0], named, &names))
		return err_set(err, ERR_USAGE, "--pattern %.40s: there is none, allowed are %s",
			       named, names);
	if (!named && !split_known(&t->split[0], pattern))
		return err_set(
			err, ERR_USAGE,
			"config.pattern is not that of tekken: say by --pattern how it splits");
	t->splits = 1;
	return 0;
}

static int take_tokens(struct tokenizer *t, const json_t *o, struct err *err)
{
	const json_t *config = json_object_get(o, "config"), *vocab = json_object_get(o, "vocab");
	int64_t size = js_int(config, "default_vocab_size", 0),
		specials = js_int(config, "default_num_special_tokens", -1);

	if (specials < 0 || size <= specials || size > VOCABULARY_MAX ||
	    (uint64_t)(size - specials) > json_array_size(vocab))
		return err_set(
			err, ERR_USAGE,
			"config: default_vocab_size and default_num_special_tokens do not fit a "
			"vocab of %zu tokens",
			json_array_size(vocab));
	for (int64_t i = 0; i < size - specials; i++)
		if (add_token(t, json_array_get(vocab, (size_t)i), (uint32_t)i, (uint32_t)specials,
			      err))
			return -1;
	return add_specials(t, json_object_get(o, "special_tokens"), (uint32_t)specials, err);
}

int tokenizer_read_tekken(struct tokenizer *t, const char *text, size_t len, const char *pattern,
			  struct err *err)
{
	json_error_t why;
	/* token_str, which is not looked at, may hold a zero */
	json_t *o = json_loadb(text, len, JSON_ALLOW_NUL, &why);
	int rc = o ? 0
		   : err_set(err, ERR_USAGE, "bad JSON at line %d column %d: %s", why.line,
			     why.column, why.text);

	if (rc == 0)
		rc = take_tokens(t, o, err);
	if (rc == 0)
		rc = take_pattern(t, json_object_get(o, "config"), pattern, err);
	json_decref(o);
	if (rc)
		return rc;
	t->by_bytes = true;
	t->ignore_merges = true;
	tokenizer_find_bytes(t);
	tokenizer_pair_all(t, NULL);
	return 0;
}
