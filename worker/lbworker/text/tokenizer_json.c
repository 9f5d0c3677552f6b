/* SPDX-License-Identifier: MIT */
/* tokenizer_json.c - Hugging Face's tokenizer.json, model BPE: tokens, merges, added tokens. What
 * would change a text in a way that is not done here is refused by its name. */
#include "worker/lbworker/text/tokenizer_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "worker/lbworker/unicode/unicode.h"

/* --- the alphabet of bytes ------------------------------------------------------------------- */

static void fill_alphabet(int16_t byte_of[0x180])
{
	uint16_t character[256];

	tokenizer_alphabet(character);
	memset(byte_of, 0xFF, 0x180 * sizeof(*byte_of));
	for (int b = 0; b < 256; b++)
		byte_of[character[b]] = (int16_t)b;
}

/* `name` in bytes, into out[strlen(name)]; false when it holds something else. */
static bool name_bytes(const int16_t byte_of[0x180], const char *name, size_t len, char *out,
		       size_t *out_len)
{
	const unsigned char *at = (const unsigned char *)name, *end = at + len;
	unsigned width;

	for (*out_len = 0; at < end; at += width) {
		uint32_t c = unicode_decode(at, end, &width);
		if (c >= 0x180 || byte_of[c] < 0)
			return false;
		out[(*out_len)++] = (char)byte_of[c];
	}
	return true;
}

/* --- tokens and merges ----------------------------------------------------------------------- */

/* Special tokens often stand in the vocabulary, too, and need not be made of bytes: they keep
 * their name, which is met in no text: a " " there is no blank, which would be "Ġ". */
static int read_vocab(struct reading *r)
{
	const char *name;
	json_t *id;

	json_object_foreach(r->vocab, name, id) {
		size_t len = strlen(name), bytes;
		char *text = xmalloc(len + 1);
		json_int_t number = json_integer_value(id);
		bool in_bytes = r->t->by_bytes && name_bytes(r->byte_of, name, len, text, &bytes);
		bool fits = json_is_integer(id) && number >= 0 && number < VOCABULARY_MAX;
		if (fits && r->t->by_bytes && !in_bytes)
			fits = vocabulary_add_name(&r->t->vocabulary, (uint32_t)number, name, len);
		else if (fits)
			fits = vocabulary_add(&r->t->vocabulary, (uint32_t)number,
					      in_bytes ? text : name, in_bytes ? bytes : len);
		free(text);
		if (!fits)
			return err_set(
				r->err, ERR_USAGE,
				"model.vocab: \"%.40s\" has no number of its own from 0 to %d",
				name, VOCABULARY_MAX - 1);
	}
	return 0;
}

static int64_t id_of(const struct reading *r, const char *name)
{
	return js_int(r->vocab, name, -1);
}

/* "left right", or ["left", "right"]. */
static int read_merge(struct reading *r, const json_t *merge, uint32_t rank)
{
	char *text = NULL;
	const char *left = json_string_value(json_array_get(merge, 0));
	const char *right = json_string_value(json_array_get(merge, 1));

	if (json_is_string(merge)) {
		text = xstrdup(json_string_value(merge));
		char *blank = strchr(text, ' ');
		if (blank) {
			*blank = '\0';
			left = text;
			right = blank + 1;
		}
	}
	char *both = left && right ? xasprintf("%s%s", left, right) : NULL;
	int64_t a = both ? id_of(r, left) : -1, b = both ? id_of(r, right) : -1;
	int64_t whole = both ? id_of(r, both) : -1;
	if (a >= 0 && b >= 0 && whole >= 0)
		bpe_add(r->t->bpe, (uint32_t)a, (uint32_t)b, rank, (uint32_t)whole);
	free(both);
	free(text);
	if (a < 0 || b < 0 || whole < 0)
		return err_set(r->err, ERR_USAGE,
			       "model.merges: number %u is no two tokens that make a third", rank);
	return 0;
}

static bool is_set(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return value && !json_is_null(value) &&
	       !(json_is_string(value) && json_string_length(value) == 0) &&
	       !(json_is_real(value) && json_real_value(value) == 0);
}

static int read_model(struct reading *r, const json_t *model)
{
	static const char *const refused[] = { "dropout", "continuing_subword_prefix",
					       "end_of_word_suffix" };
	struct tokenizer *t = r->t;
	const char *type = js_str(model, "type", "BPE");
	const json_t *merges = json_object_get(model, "merges");

	if (strcmp(type, "BPE") != 0)
		return err_set(r->err, ERR_USAGE, "model.type: %.40s is not supported, BPE is",
			       type);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (is_set(model, refused[i]))
			return reading_refuse(r, "model", refused[i]);
	r->vocab = json_object_get(model, "vocab");
	if (!json_is_object(r->vocab) || !json_is_array(merges))
		return err_set(r->err, ERR_USAGE, "model: has no vocab or no merges");
	t->ignore_merges = js_bool(model, "ignore_merges", false);
	t->byte_fallback = js_bool(model, "byte_fallback", false);
	t->fuse_unknown = js_bool(model, "fuse_unk", false);
	if (read_vocab(r))
		return -1;
	for (size_t i = 0; i < json_array_size(merges); i++)
		if (read_merge(r, json_array_get(merges, i), (uint32_t)i))
			return -1;
	int64_t unknown = id_of(r, js_str(model, "unk_token", ""));
	t->unknown = unknown >= 0 ? (uint32_t)unknown : NO_TOKEN;
	tokenizer_find_bytes(t);
	return 0;
}

/* --- the file -------------------------------------------------------------------------------- */

/* As it stands in a text that was normalized: owned; NULL when there is no room. */
static char *normal_name(const struct tokenizer *t, const char *name)
{
	struct buf room[NORMAL_BUFFERS], blanks;
	const char *text = name;
	size_t len = strlen(name);
	char *out = NULL;

	for (size_t i = 0; i < NORMAL_BUFFERS; i++)
		buf_init(&room[i], SIZE_MAX / 2);
	buf_init(&blanks, SIZE_MAX / 2);
	if (normal_form(t, room, &text, &len) == 0 &&
	    (!t->meta || t->meta_is_late || normal_blanks(t, true, &blanks, &text, &len) == 0))
		out = xstrndup(text, len);
	for (size_t i = 0; i < NORMAL_BUFFERS; i++)
		buf_fini(&room[i]);
	buf_fini(&blanks);
	return out;
}

/* Hugging Face's library takes the number of the vocabulary, else the next one behind it, whatever
 * the file says: a file that was edited by hand would give other tokens here. */
static int check_added_id(const struct reading *r, const char *content, int64_t id, int64_t *next,
			  struct err *err)
{
	const struct added_token *earlier;
	int64_t theirs = id_of(r, content);

	if (theirs < 0)
		theirs = *next;
	if (id == theirs) {
		*next += theirs == *next;
		return 0;
	}
	earlier = added_tokens_named(&r->t->added, content);
	if (earlier && earlier->id == id)
		return 0;
	return err_set(err, ERR_USAGE,
		       "added_tokens: \"%.40s\" has the id %" PRId64 ", and is given %" PRId64
		       " by Hugging Face's library: that of "
		       "model.vocab, else the next one behind it",
		       content, id, theirs);
}

static int read_added(struct reading *r, const json_t *list)
{
	int64_t next = (int64_t)json_object_size(r->vocab);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		int64_t id = js_int(o, "id", -1);
		const char *content = js_str(o, "content", "");
		if (id < 0 || id >= VOCABULARY_MAX || content[0] == '\0')
			return err_set(
				r->err, ERR_USAGE,
				"added_tokens: number %zu has no content, or no id from 0 to %d", i,
				VOCABULARY_MAX - 1);
		if (check_added_id(r, content, id, &next, r->err))
			return -1;
		bool is_normal = js_bool(o, "normalized", false);
		char *text = is_normal ? normal_name(r->t, content) : xstrdup(content);
		char *name = xstrdup(content);
		if (!text || text[0] == '\0') { /* it is found nowhere */
			free(text);
			text = xstrdup(content);
		}
		const struct added_token token = { .text = text,
						   .len = strlen(text),
						   .name = strcmp(text, name) ? name : NULL,
						   .id = (uint32_t)id,
						   .special = js_bool(o, "special", false),
						   .normalized = is_normal,
						   .left_strip = js_bool(o, "lstrip", false),
						   .right_strip = js_bool(o, "rstrip", false),
						   .single_word = js_bool(o, "single_word",
									  false) };
		added_tokens_add(&r->t->added, &token);
		free(text);
		free(name);
	}
	return 0;
}

/* jansson reads no name with a zero byte. Where tokens are bytes, each spelled as a character that
 * can be seen, such a token is met in no text: it gets the name of a character that is none. Owned;
 * *found says whether there was one. */
static char *without_zeros(const char *text, size_t len, bool *found)
{
	static const char zero[] = "\\u0000", none[] = "\\uFDD0";
	char *copy = xstrndup(text, len);

	for (char *at = copy; (at = strchr(at, '\\')) && at[1];) {
		bool is_zero = strncmp(at, zero, sizeof(zero) - 1) == 0;
		if (is_zero)
			memcpy(at, none, sizeof(none) - 1);
		*found = *found || is_zero;
		at += 2;
	}
	return copy;
}

int tokenizer_read_json(struct tokenizer *t, const char *text, size_t len, struct err *err)
{
	struct reading r = { .t = t, .err = err };
	bool has_zeros = false;
	char *copy = without_zeros(text, len, &has_zeros);
	json_t *o = js_parse(strlen(copy) < len ? text : copy, len, err);
	int rc = -1;

	free(copy);
	if (!o)
		return -1;
	fill_alphabet(r.byte_of);
	if (reading_normalizer(&r, json_object_get(o, "normalizer")) == 0 &&
	    reading_pre_tokenizer(&r, json_object_get(o, "pre_tokenizer")) == 0 &&
	    reading_decoder(&r, json_object_get(o, "decoder")) == 0 &&
	    reading_post_processor(&r, json_object_get(o, "post_processor")) == 0 &&
	    read_model(&r, json_object_get(o, "model")) == 0 &&
	    read_added(&r, json_object_get(o, "added_tokens")) == 0)
		rc = 0;
	if (rc == 0 && has_zeros && !t->by_bytes)
		rc = err_set(err, ERR_USAGE,
			     "model.vocab: a token with a zero byte is not supported");
	if (rc == 0) {
		tokenizer_cut_at_blanks(t);
		/* told here: of a file that is refused it is not what matters */
		if (r.has_own_pattern)
			log_warn("%s: its pattern is none of those that are built in: it is slower",
				 t->path);
	}
	json_decref(o);
	return rc;
}
