/* SPDX-License-Identifier: MIT */
/* encoder.c - a text's way to tokens: added tokens are found, what lies between them is
 * normalized, split into words, and words become tokens by merging pairs, or by looking them up
 * where they were met before. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/unicode/unicode.h"

enum {
	CACHE_BITS = 15,
	CACHED_BYTES = 16,  /* longer words are not kept */
	CACHED_TOKENS = 11, /* so that an entry is a line of the processor's cache */
	MAX_TEXT = 1 << 30,
};

/* A word and its tokens. */
struct cached {
	uint64_t low, high;  /* its bytes, zeros behind */
	uint16_t len, count; /* len 0: free */
	uint32_t id[CACHED_TOKENS];
};
_Static_assert(sizeof(struct cached) == 64, "one line of the cache");

struct encoder {
	const struct tokenizer *t;
	struct cached *cache; /* [1 << CACHE_BITS] */
	struct bpe_scratch *scratch;
	uint32_t *symbol; /* of the word at hand */
	size_t symbols;
	struct buf normal[NORMAL_BUFFERS], blanks, mapped[SPLITS_MAX]; /* of the piece at hand */
	uint16_t alphabet[256];                                        /* of mapped */
	bool has_regex, is_first;
	const unsigned char *text_end; /* nothing behind it may be read */
	struct tokens *out;
};

struct encoder *encoder_create(const struct tokenizer *t)
{
	struct encoder *e = xcalloc(1, sizeof(*e));

	unicode_init();
	e->t = t;
	e->cache = aligned_alloc(sizeof(struct cached), sizeof(struct cached) << CACHE_BITS);
	if (!e->cache)
		abort();
	memset(e->cache, 0, sizeof(struct cached) << CACHE_BITS);
	e->scratch = bpe_scratch_create();
	for (size_t i = 0; i < NORMAL_BUFFERS; i++)
		buf_init(&e->normal[i], SIZE_MAX / 2);
	buf_init(&e->blanks, SIZE_MAX / 2);
	for (size_t i = 0; i < SPLITS_MAX; i++)
		buf_init(&e->mapped[i], SIZE_MAX / 2);
	tokenizer_alphabet(e->alphabet);
	for (size_t i = 0; i < t->splits; i++)
		e->has_regex |= t->split[i].kind == SPLIT_REGEX && !t->split[i].mapped;
	return e;
}

void encoder_destroy(struct encoder *e)
{
	if (!e)
		return;
	free(e->cache);
	bpe_scratch_destroy(e->scratch);
	free(e->symbol);
	for (size_t i = 0; i < NORMAL_BUFFERS; i++)
		buf_fini(&e->normal[i]);
	buf_fini(&e->blanks);
	for (size_t i = 0; i < SPLITS_MAX; i++)
		buf_fini(&e->mapped[i]);
	free(e);
}

void tokens_fini(struct tokens *t)
{
	free(t->id);
	*t = (struct tokens){ 0 };
}

static void make_room(struct tokens *t, size_t more)
{
	if (t->count + more <= t->room)
		return;
	t->room = 2 * t->room + more + 64;
	t->id = xrealloc(t->id, t->room * sizeof(*t->id));
}

void tokens_add(struct tokens *t, uint32_t id)
{
	make_room(t, 1);
	t->id[t->count++] = id;
}

static void add_all(struct tokens *t, const uint32_t *id, size_t count)
{
	if (count == 0) /* all that it holds is unknown */
		return;
	make_room(t, count);
	memcpy(t->id + t->count, id, count * sizeof(*id));
	t->count += count;
}

/* --- one word ------------------------------------------------------------------------------- */

/* A character that is no token: its bytes, where there are such tokens, or one that says so. */
static size_t put_unknown(const struct tokenizer *t, const unsigned char *at, unsigned width,
			  bool after_unknown, uint32_t *symbol)
{
	bool all = t->byte_fallback;

	for (unsigned i = 0; i < width && all; i++)
		all = t->byte[at[i]] != NO_TOKEN;
	if (all) {
		for (unsigned i = 0; i < width; i++)
			symbol[i] = t->byte[at[i]];
		return width;
	}
	if (t->unknown == NO_TOKEN || (after_unknown && t->fuse_unknown))
		return 0;
	symbol[0] = t->unknown;
	return 1;
}

static size_t byte_symbols(const struct tokenizer *t, const unsigned char *word, size_t len,
			   uint32_t *symbol)
{
	size_t count = 0;
	bool was_unknown = false;

	for (size_t i = 0; i < len; i++) {
		bool is_unknown = t->byte[word[i]] == NO_TOKEN;
		symbol[count] = is_unknown ? t->unknown : t->byte[word[i]];
		count += symbol[count] != NO_TOKEN &&
			 !(is_unknown && was_unknown && t->fuse_unknown);
		was_unknown = is_unknown;
	}
	return count;
}

static size_t character_symbols(const struct tokenizer *t, const unsigned char *word, size_t len,
				uint32_t *symbol)
{
	const unsigned char *end = word + len;
	size_t count = 0;
	bool was_unknown = false;
	unsigned width;

	for (const unsigned char *at = word; at < end; at += width) {
		unicode_decode(at, end, &width);
		symbol[count] = vocabulary_find(&t->vocabulary, (const char *)at, width);
		if (symbol[count] != NO_TOKEN) {
			count++;
			was_unknown = false;
			continue;
		}
		size_t more = put_unknown(t, at, width, was_unknown, symbol + count);
		was_unknown = more == 0 || symbol[count] == t->unknown;
		count += more;
	}
	return count;
}

/* Into e->symbol; returns how many. */
static size_t merge_word(struct encoder *e, const unsigned char *word, size_t len)
{
	const struct tokenizer *t = e->t;

	if (len > e->symbols) {
		e->symbols = 2 * len;
		e->symbol = xrealloc(e->symbol, e->symbols * sizeof(*e->symbol));
	}
	if (t->ignore_merges) {
		e->symbol[0] = vocabulary_find(&t->vocabulary, (const char *)word, len);
		if (e->symbol[0] != NO_TOKEN)
			return 1;
	}
	size_t count = t->by_bytes ? byte_symbols(t, word, len, e->symbol)
				   : character_symbols(t, word, len, e->symbol);
	return bpe_merge(t->bpe, e->scratch, e->symbol, count);
}

static void put_long_word(struct encoder *e, const unsigned char *word, size_t len)
{
	size_t count = merge_word(e, word, len);

	add_all(e->out, e->symbol, count);
}

/* The word's bytes as two numbers, zeros behind. */
static inline void load_word(const struct encoder *e, const unsigned char *word, size_t len,
			     uint64_t *low, uint64_t *high)
{
	if (e->text_end - word < CACHED_BYTES) {
		unsigned char padded[CACHED_BYTES] = { 0 };
		memcpy(padded, word, len);
		memcpy(low, padded, 8);
		memcpy(high, padded + 8, 8);
		return;
	}
	memcpy(low, word, 8);
	memcpy(high, word + 8, 8);
	if (len < 8) {
		*low &= ~(UINT64_MAX << 8 * len);
		*high = 0;
	} else if (len < 16) {
		*high &= ~(UINT64_MAX << 8 * (len - 8));
	}
}

static inline void put_word(struct encoder *e, const unsigned char *word, size_t len)
{
	uint64_t low, high;

	if (len > CACHED_BYTES) {
		put_long_word(e, word, len);
		return;
	}
	load_word(e, word, len, &low, &high);
	uint64_t hash = (low ^ (high * 0xD6E8FEB86659FD93ULL + len)) * 0x9E3779B97F4A7C15ULL;
	struct cached *c =
		&e->cache[(hash ^ hash >> 32) * 0x9E3779B97F4A7C15ULL >> (64 - CACHE_BITS)];
	if (c->low != low || c->high != high || c->len != len) {
		size_t count = merge_word(e, word, len);
		if (count > CACHED_TOKENS) {
			add_all(e->out, e->symbol, count);
			return;
		}
		c->low = low;
		c->high = high;
		c->len = (uint16_t)len;
		c->count = (uint16_t)count;
		memcpy(c->id, e->symbol, count * sizeof(*c->id));
	}
	struct tokens *out = e->out;
	make_room(out, CACHED_TOKENS);
	memcpy(out->id + out->count, c->id, 4 * sizeof(*c->id));
	if (c->count > 4)
		memcpy(out->id + out->count + 4, c->id + 4, (CACHED_TOKENS - 4) * sizeof(*c->id));
	out->count += c->count;
}

/* --- words ---------------------------------------------------------------------------------- */

static int too_large(struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "the text is too large, or the tokenizer's pattern takes too long");
}

/* at[0..end) in the alphabet of bytes, a character each. */
static int map_bytes(const struct encoder *e, const unsigned char *at, const unsigned char *end,
		     struct buf *out)
{
	unsigned char character[4];
	int rc = 0;

	for (out->len = 0; at < end && rc == 0; at++)
		rc = buf_add(out, character, unicode_encode(e->alphabet[*at], character));
	return rc;
}

static size_t count_characters(const unsigned char *at, const unsigned char *end)
{
	size_t count = 0;

	for (; at < end; at++)
		count += (*at & 0xC0) != 0x80;
	return count;
}

/* Cuts from `at` to `end` by split `level` and those behind it. */
static int put_words(struct encoder *e, size_t level, const unsigned char *at,
		     const unsigned char *end, struct err *err)
{
	const struct split *s = level < e->t->splits ? &e->t->split[level] : NULL;
	const unsigned char *seen = at, *seen_end = end; /* what the split sees */

	if (s && s->mapped) {
		if (map_bytes(e, at, end, &e->mapped[level]))
			return too_large(err);
		seen = (const unsigned char *)e->mapped[level].data;
		seen_end = seen + e->mapped[level].len;
	}
	while (at < end) {
		bool is_left_out = false;
		const unsigned char *stop = s ? split_word(s, seen, seen_end, &is_left_out)
					      : seen_end;
		if (!stop)
			return err_set(err, ERR_USAGE, "the tokenizer's pattern takes too long");
		const unsigned char *next = s && s->mapped ? at + count_characters(seen, stop)
							   : stop;
		if (!is_left_out && level + 1 < e->t->splits) {
			if (put_words(e, level + 1, at, next, err))
				return -1;
		} else if (!is_left_out) {
			put_word(e, at, (size_t)(next - at));
		}
		at = next;
		seen = stop;
	}
	return 0;
}

/* PCRE2 wants UTF-8: bytes that are none become words of their own. */
static int put_valid_words(struct encoder *e, const unsigned char *at, const unsigned char *end,
			   struct err *err)
{
	const unsigned char *valid = at;

	for (unsigned width; at < end; at += width) {
		if (unicode_decode(at, end, &width) != UNI_BAD)
			continue;
		if (put_words(e, 0, valid, at, err))
			return -1;
		put_word(e, at, 1);
		valid = at + 1;
	}
	return put_words(e, 0, valid, end, err);
}

/* --- pieces between added tokens ------------------------------------------------------------ */

static int put_normal(struct encoder *e, const char *text, size_t len, struct err *err)
{
	const struct tokenizer *t = e->t;
	struct buf blank;
	int rc;

	if (len == 0)
		return 0;
	if (t->meta && t->meta_is_late && normal_blanks(t, e->is_first, &e->blanks, &text, &len))
		return too_large(err);
	const unsigned char *at = (const unsigned char *)text;
	buf_init(&blank, SIZE_MAX / 2);
	if (t->prefix_blank && text[0] != ' ') {
		if (buf_add(&blank, " ", 1) || buf_add(&blank, text, len))
			abort();
		at = (const unsigned char *)blank.data;
		len = blank.len;
	}
	e->text_end = at + len;
	rc = e->has_regex ? put_valid_words(e, at, at + len, err)
			  : put_words(e, 0, at, at + len, err);
	buf_fini(&blank);
	e->is_first = false;
	return rc;
}

/* A piece without added tokens of the first kind. */
static int put_piece(struct encoder *e, const char *text, size_t len, bool specials,
		     struct err *err)
{
	const struct tokenizer *t = e->t;
	const struct added_token *token;
	size_t from = 0, start, stop;

	if (normal_form(t, e->normal, &text, &len) ||
	    (t->meta && !t->meta_is_late && normal_blanks(t, e->is_first, &e->blanks, &text, &len)))
		return too_large(err);
	while (added_tokens_next(&t->added, text, len, from, true, specials, &start, &stop,
				 &token)) {
		if (put_normal(e, text + from, start - from, err))
			return -1;
		tokens_add(e->out, token->id);
		e->is_first = false;
		from = stop;
	}
	return put_normal(e, text + from, len - from, err);
}

int encoder_encode(struct encoder *e, const char *text, size_t len, bool specials,
		   struct tokens *out, struct err *err)
{
	const struct added_token *token;
	size_t from = 0, start, stop;

	if (len > MAX_TEXT)
		return err_set(err, ERR_USAGE, "a text of %zu bytes is too large, 1 GiB is allowed",
			       len);
	e->out = out;
	e->is_first = true;
	while (added_tokens_next(&e->t->added, text, len, from, false, specials, &start, &stop,
				 &token)) {
		if (put_piece(e, text + from, start - from, specials, err))
			return -1;
		tokens_add(out, token->id);
		e->is_first = false;
		from = stop;
	}
	return put_piece(e, text + from, len - from, specials, err);
}
