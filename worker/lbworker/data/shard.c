/* SPDX-License-Identifier: MIT */
/* shard.c - which format a file is of, and whether it is sound. */
#include "worker/lbworker/data/shard.h"
#include "worker/lbworker/data/token_formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/files.h"

_Static_assert(sizeof(struct shard_header) == 64, "the header is 64 bytes on disk");

static const char shard_magic[8] = SHARD_MAGIC;

enum { LLMC_HEADER_BYTES = 256 * 4, PIECES = 64, PIECE_BYTES = 4096, PIECE_TOKENS = 2048 };

static const struct llmc_format {
	uint32_t magic, version, token_bytes;
} llmc_formats[] = {
	{ 20240520, 1, 2 },
	{ 20240801, 7, 4 },
};

/* --- native --------------------------------------------------------------------------------- */

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

/* Bytes the whole file must have; false when the counts cannot be true. */
static bool expected_bytes(const struct shard_header *h, uint64_t *out)
{
	const uint64_t limit = (uint64_t)1 << 60;

	if (h->token_count > limit / h->token_bytes || h->document_count > limit / 8 ||
	    h->notes_bytes > limit)
		return false;
	*out = sizeof(*h) + padded(h->token_count * h->token_bytes) + (h->document_count + 1) * 8 +
	       padded(h->notes_bytes);
	return true;
}

static int check_header(const struct shard *s, const struct shard_header *h, uint64_t vocab,
			struct err *err)
{
	uint64_t expected;

	if (h->version != SHARD_VERSION && h->version != SHARD_VERSION_NOTES)
		return err_set(err, ERR_USAGE,
			       "%s: shard version %" PRIu32 ", this program reads %d and %d",
			       s->path, h->version, SHARD_VERSION, SHARD_VERSION_NOTES);
	if (h->token_bytes != 1 && h->token_bytes != 2 && h->token_bytes != 4)
		return err_set(err, ERR_USAGE, "%s: %" PRIu32 " bytes a token, must be 1, 2 or 4",
			       s->path, h->token_bytes);
	if (!expected_bytes(h, &expected) || expected != s->bytes)
		return err_set(err, ERR_USAGE,
			       "%s: %" PRIu64 " tokens in %" PRIu64
			       " documents do not fit its size of %" PRIu64 " bytes (cut short?)",
			       s->path, h->token_count, h->document_count, s->bytes);
	if (h->vocab > vocab)
		return err_set(err, ERR_USAGE,
			       "%s: is of a vocabulary of %" PRIu64
			       ", the model's vocabulary has %" PRIu64,
			       s->path, h->vocab, vocab);
	return 0;
}

static int check_index(const struct shard *s, const struct shard_header *h, struct err *err)
{
	const char *at = s->tokens + padded(h->token_count * h->token_bytes);
	uint64_t before = 0, start = 0;

	for (uint64_t i = 0; i <= h->document_count; i++, before = start) {
		memcpy(&start, at + i * sizeof(start), sizeof(start));
		if (start < before || start > h->token_count || (i == 0 && start != 0))
			return err_set(err, ERR_USAGE,
				       "%s: document %" PRIu64 " starts at %" PRIu64
				       ", not between %" PRIu64 " and %" PRIu64,
				       s->path, i, start, before, h->token_count);
	}
	if (start != h->token_count)
		return err_set(err, ERR_USAGE,
			       "%s: the document index ends at %" PRIu64 ", not at %" PRIu64
			       " tokens",
			       s->path, start, h->token_count);
	return 0;
}

static void take_digest(uint8_t out[SHARD_DIGEST_BYTES], XXH128_hash_t hash)
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, hash);
	memcpy(out, canonical.digest, SHARD_DIGEST_BYTES);
}

static int check_digest(const struct shard *s, struct err *err)
{
	uint8_t digest[SHARD_DIGEST_BYTES];

	take_digest(digest, XXH3_128bits((const char *)s->map + sizeof(struct shard_header),
					 s->bytes - sizeof(struct shard_header)));
	if (memcmp(digest, s->digest, sizeof(digest)) != 0)
		return err_set(err, ERR_USAGE, "%s: its bytes do not match its digest: damaged",
			       s->path);
	return 0;
}

static int open_native(struct shard *s, uint64_t vocab, bool verify, struct err *err)
{
	struct shard_header h;

	if (s->bytes < sizeof(h))
		return err_set(err, ERR_USAGE, "%s: too short for a token shard", s->path);
	memcpy(&h, s->map, sizeof(h));
	s->tokens = (const char *)s->map + sizeof(h);
	s->token_bytes = h.token_bytes;
	s->token_count = h.token_count;
	memcpy(s->digest, h.digest, sizeof(s->digest));
	if (h.version == SHARD_VERSION)
		h.notes_bytes = 0;
	if (check_header(s, &h, vocab, err) || check_index(s, &h, err))
		return -1;
	if (h.notes_bytes > 0) {
		s->notes = (const char *)s->map + s->bytes - padded(h.notes_bytes);
		s->notes_bytes = h.notes_bytes;
	}
	return verify ? check_digest(s, err) : 0;
}

/* --- the formats of others ------------------------------------------------------------------ */

static void digest_pieces(struct shard *s)
{
	XXH3_state_t state;

	XXH3_128bits_reset(&state);
	XXH3_128bits_update(&state, &s->bytes, sizeof(s->bytes));
	for (uint64_t i = 0; i < PIECES; i++) {
		uint64_t at = s->bytes / PIECES * i, count = s->bytes - at;
		if (i == PIECES - 1 && s->bytes > PIECE_BYTES)
			at = s->bytes - PIECE_BYTES;
		XXH3_128bits_update(&state, (const char *)s->map + at,
				    count < PIECE_BYTES ? count : PIECE_BYTES);
	}
	take_digest(s->digest, XXH3_128bits_digest(&state));
}

static int check_token(const struct shard *s, uint64_t i, uint64_t vocab, struct err *err)
{
	if (shard_token(s, i) < vocab)
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: token %" PRIu64 " at %" PRIu64 " is outside the vocabulary of %" PRIu64,
		       s->path, shard_token(s, i), i, vocab);
}

static int check_tokens(const struct shard *s, uint64_t vocab, struct err *err)
{
	for (uint64_t i = 0; i < s->token_count; i++)
		if (check_token(s, i, vocab, err))
			return -1;
	return 0;
}

/* Where not all is read, some of it is all the same: another tokenizer shows within a few
 * pieces. */
static int check_pieces(const struct shard *s, uint64_t vocab, struct err *err)
{
	uint64_t each = s->token_count / PIECES + 1;

	for (uint64_t i = 0; i < s->token_count; i++) {
		if (i % each >= PIECE_TOKENS)
			i += each - PIECE_TOKENS - 1;
		else if (check_token(s, i, vocab, err))
			return -1;
	}
	return 0;
}

static int check_ids(const struct shard *s, uint64_t vocab, bool verify, struct err *err)
{
	return verify ? check_tokens(s, vocab, err) : check_pieces(s, vocab, err);
}

static int open_foreign(struct shard *s, uint64_t header_bytes, struct err *err)
{
	uint64_t bytes = s->bytes - header_bytes;

	if (bytes % s->token_bytes != 0)
		return err_set(err, ERR_USAGE,
			       "%s: %" PRIu64 " bytes are no whole number of uint%u"
			       " tokens (cut short?)",
			       s->path, bytes, 8 * s->token_bytes);
	s->tokens = (const char *)s->map + header_bytes;
	s->token_count = bytes / s->token_bytes;
	digest_pieces(s);
	return 0;
}

/* Of uint32 tokens read as uint16 every second one is 0, or as small as no vocabulary is. */
static bool looks_like_uint32(const struct shard *s)
{
	enum { FEW = 64, LOOKED = 1 << 16, HIGH = 16, LOW = 256 };
	uint64_t count = s->token_count < LOOKED ? s->token_count : LOOKED, large = 0, odd = 0;

	if (count < FEW)
		return false;
	for (uint64_t i = 0; i + 1 < count; i += 2) {
		uint64_t low = shard_token(s, i), high = shard_token(s, i + 1);
		if (high >= HIGH)
			return false;
		large += low >= LOW;
		odd += high;
	}
	return odd == 0 || large > 0;
}

/* A raw file does not say what it holds. */
static int open_raw(struct shard *s, uint64_t vocab, bool verify, struct err *err)
{
	s->token_bytes = 2;
	if (open_foreign(s, 0, err))
		return -1;
	if (!looks_like_uint32(s))
		return check_ids(s, vocab, verify, err);
	return err_set(err, ERR_USAGE,
		       "%s: every second token is 0, or nearly, as if they were uint32; without a "
		       "header they must be uint16 (numpy.save writes one that is read)",
		       s->path);
}

static int other_count(const struct shard *s, const char *said_by, uint64_t said, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "%s: %s says %" PRIu64 " tokens, it holds %" PRIu64 " (cut short?)", s->path,
		       said_by, said, s->token_count);
}

static int open_llmc(struct shard *s, const struct llmc_format *f, uint64_t vocab, bool verify,
		     struct err *err)
{
	uint32_t words[3];

	if (s->bytes < LLMC_HEADER_BYTES)
		return err_set(err, ERR_USAGE, "%s: too short for the header of an llm.c file",
			       s->path);
	memcpy(words, s->map, sizeof(words));
	if (words[1] != f->version)
		return err_set(err, ERR_USAGE,
			       "%s: llm.c file of version %" PRIu32 ", this program reads %" PRIu32,
			       s->path, words[1], f->version);
	s->token_bytes = f->token_bytes;
	if (open_foreign(s, LLMC_HEADER_BYTES, err))
		return -1;
	if ((uint32_t)s->token_count != words[2])
		return other_count(s, "its header", words[2], err);
	return check_ids(s, vocab, verify, err);
}

/* --- opening -------------------------------------------------------------------------------- */

static int map_file(struct shard *s, struct err *err)
{
	size_t bytes;

	s->map = file_map(s->path, &bytes, err);
	s->bytes = bytes;
	if (!s->map)
		return -1;
	if (bytes < sizeof(shard_magic))
		return err_set(err, ERR_USAGE, "%s: too short for a token shard", s->path);
	return 0;
}

static bool is_named_bin(const char *path)
{
	size_t length = strlen(path);
	return length > 4 && strcmp(path + length - 4, ".bin") == 0;
}

int shard_open(struct shard *s, uint64_t vocab, bool verify, struct err *err)
{
	uint32_t first;

	if (map_file(s, err))
		return -1;
	if (memcmp(s->map, shard_magic, sizeof(shard_magic)) == 0)
		return open_native(s, vocab, verify, err);
	memcpy(&first, s->map, sizeof(first));
	for (size_t i = 0; i < sizeof(llmc_formats) / sizeof(llmc_formats[0]); i++)
		if (llmc_formats[i].magic == first)
			return open_llmc(s, &llmc_formats[i], vocab, verify, err);
	struct token_layout layout;
	int found = token_layout_find(&layout, s->path, s->map, s->bytes, err);
	if (found < 0)
		return -1;
	if (found > 0) {
		s->token_bytes = layout.token_bytes;
		if (open_foreign(s, layout.first, err))
			return -1;
		if (s->token_count != layout.token_count)
			return other_count(s, layout.said_by, layout.token_count, err);
		return check_ids(s, vocab, verify, err);
	}
	if (!is_named_bin(s->path))
		return err_set(err, ERR_USAGE,
			       "%s: not a token shard (make one with lbworker prepare)", s->path);
	return open_raw(s, vocab, verify, err);
}

void shard_close(struct shard *s)
{
	if (s->map)
		munmap(s->map, s->bytes);
	free(s->path);
	*s = (struct shard){ 0 };
}

uint64_t shard_token(const struct shard *s, uint64_t position)
{
	uint64_t token = 0;

	/* little-endian, as every host of ours */
	memcpy(&token, s->tokens + position * s->token_bytes, s->token_bytes);
	return token;
}
