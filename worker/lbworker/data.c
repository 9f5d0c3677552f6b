/* SPDX-License-Identifier: MIT */
/* data.c - shards are mapped, checked once, and then only indexed. */
#include "worker/lbworker/data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/mem.h"
#include "worker/lbworker/rng.h"

_Static_assert(sizeof(struct shard_header) == 64, "the header is 64 bytes on disk");

static const char SHARD_MAGIC[8] = { 'L', 'B', 'T', 'O', 'K', 'E', 'N', 'S' };
static const char SHARD_SUFFIX[] = ".tokens";

struct shard {
	char *path;
	void *map;
	uint64_t bytes;
	struct shard_header header;
	uint64_t samples;
};

struct data {
	struct shard *shard;
	size_t shards;
	uint64_t tokens, samples, vocab, seed;
	size_t seq;
	char digest[2 * SHARD_DIGEST_BYTES + 1];
};

/* --- one shard ------------------------------------------------------------------------------ */

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

/* Bytes the whole file must have; false when the counts cannot be true. */
static bool expected_bytes(const struct shard_header *h, uint64_t *out)
{
	const uint64_t limit = (uint64_t)1 << 60;

	if (h->token_count > limit / h->token_bytes || h->document_count > limit / 8)
		return false;
	*out = sizeof(*h) + padded(h->token_count * h->token_bytes) + (h->document_count + 1) * 8;
	return true;
}

static int check_header(const struct shard *s, struct err *err)
{
	const struct shard_header *h = &s->header;
	uint64_t expected;

	if (memcmp(h->magic, SHARD_MAGIC, sizeof(SHARD_MAGIC)) != 0)
		return err_set(err, ERR_USAGE, "%s: not a token shard (make one with lbworker prepare)",
			       s->path);
	if (h->version != SHARD_VERSION)
		return err_set(err, ERR_USAGE, "%s: shard version %" PRIu32 ", this program reads %d",
			       s->path, h->version, SHARD_VERSION);
	if (h->token_bytes != 1 && h->token_bytes != 2 && h->token_bytes != 4)
		return err_set(err, ERR_USAGE, "%s: %" PRIu32 " bytes a token, must be 1, 2 or 4",
			       s->path, h->token_bytes);
	if (!expected_bytes(h, &expected) || expected != s->bytes)
		return err_set(err, ERR_USAGE,
			       "%s: %" PRIu64 " tokens in %" PRIu64
			       " documents do not fit its size of %" PRIu64 " bytes (cut short?)",
			       s->path, h->token_count, h->document_count, s->bytes);
	return 0;
}

static int check_index(const struct shard *s, struct err *err)
{
	const struct shard_header *h = &s->header;
	const char *at = (const char *)s->map + sizeof(*h) + padded(h->token_count * h->token_bytes);
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
		return err_set(err, ERR_USAGE, "%s: the document index ends at %" PRIu64
			       ", not at %" PRIu64 " tokens", s->path, start, h->token_count);
	return 0;
}

static void digest_of(const void *bytes, uint64_t count, uint8_t out[SHARD_DIGEST_BYTES])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, count));
	memcpy(out, canonical.digest, SHARD_DIGEST_BYTES);
}

static int check_digest(const struct shard *s, struct err *err)
{
	uint8_t digest[SHARD_DIGEST_BYTES];

	digest_of((const char *)s->map + sizeof(s->header), s->bytes - sizeof(s->header), digest);
	if (memcmp(digest, s->header.digest, sizeof(digest)) != 0)
		return err_set(err, ERR_USAGE, "%s: its bytes do not match its digest: damaged",
			       s->path);
	return 0;
}

static int shard_map(struct shard *s, struct err *err)
{
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int rc = -1;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: no such file", s->path);
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_errno(err, "%s", s->path);
	} else if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(s->header)) {
		err_set(err, ERR_USAGE, "%s: too short for a token shard", s->path);
	} else {
		s->bytes = (uint64_t)st.st_size;
		s->map = mmap(NULL, s->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (s->map == MAP_FAILED) {
			s->map = NULL;
			err_errno(err, "%s: mmap", s->path);
		} else {
			rc = 0;
		}
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

static int shard_open(struct shard *s, const struct data_options *o, struct err *err)
{
	if (shard_map(s, err))
		return -1;
	memcpy(&s->header, s->map, sizeof(s->header));
	if (check_header(s, err) || check_index(s, err) || (o->verify && check_digest(s, err)))
		return -1;
	if (s->header.vocab > o->vocab)
		return err_set(err, ERR_USAGE,
			       "%s: tokens up to %" PRIu64 ", the model's vocabulary has %" PRIu64,
			       s->path, s->header.vocab, o->vocab);
	s->samples = s->header.token_count == 0 ? 0 : (s->header.token_count - 1) / o->seq;
	return 0;
}

/* --- a set of shards ------------------------------------------------------------------------ */

static void add_shard(struct data *d, char *path)
{
	d->shard = xrealloc(d->shard, (d->shards + 1) * sizeof(*d->shard));
	d->shard[d->shards++] = (struct shard){ .path = path };
}

static bool has_suffix(const char *name)
{
	size_t length = strlen(name), suffix = sizeof(SHARD_SUFFIX) - 1;
	return length > suffix && strcmp(name + length - suffix, SHARD_SUFFIX) == 0;
}

static int by_path(const void *a, const void *b)
{
	const struct shard *x = a, *y = b;
	return strcmp(x->path, y->path);
}

static int list_folder(struct data *d, const char *folder, struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	if (!dir)
		return err_errno(err, "%s", folder);
	while ((entry = readdir(dir)) != NULL)
		if (has_suffix(entry->d_name))
			add_shard(d, xasprintf("%s/%s", folder, entry->d_name));
	closedir(dir);
	if (d->shards == 0)
		return err_set(err, ERR_NOT_FOUND, "%s: holds no file *%s", folder, SHARD_SUFFIX);
	qsort(d->shard, d->shards, sizeof(*d->shard), by_path);
	return 0;
}

static int list_shards(struct data *d, const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return list_folder(d, path, err);
	add_shard(d, xstrdup(path));
	return 0;
}

static void name_data(struct data *d)
{
	uint8_t digest[SHARD_DIGEST_BYTES];
	uint8_t *all = xmalloc(d->shards * SHARD_DIGEST_BYTES);

	for (size_t i = 0; i < d->shards; i++)
		memcpy(all + i * SHARD_DIGEST_BYTES, d->shard[i].header.digest, SHARD_DIGEST_BYTES);
	digest_of(all, d->shards * SHARD_DIGEST_BYTES, digest);
	for (size_t i = 0; i < SHARD_DIGEST_BYTES; i++)
		snprintf(d->digest + 2 * i, 3, "%02x", digest[i]);
	free(all);
}

static int open_all(struct data *d, const struct data_options *o, struct err *err)
{
	if (list_shards(d, o->path, err))
		return -1;
	for (size_t i = 0; i < d->shards; i++) {
		if (shard_open(&d->shard[i], o, err))
			return -1;
		d->tokens += d->shard[i].header.token_count;
		d->samples += d->shard[i].samples;
	}
	if (d->samples == 0)
		return err_set(err, ERR_USAGE,
			       "%s: %" PRIu64 " tokens are not one sample of %zu + 1", o->path,
			       d->tokens, o->seq);
	name_data(d);
	return 0;
}

struct data *data_open(const struct data_options *o, struct err *err)
{
	struct data *d = xcalloc(1, sizeof(*d));

	d->seq = o->seq;
	d->vocab = o->vocab;
	d->seed = o->seed;
	if (open_all(d, o, err)) {
		data_close(d);
		return NULL;
	}
	return d;
}

void data_close(struct data *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->shards; i++) {
		if (d->shard[i].map)
			munmap(d->shard[i].map, d->shard[i].bytes);
		free(d->shard[i].path);
	}
	free(d->shard);
	free(d);
}

uint64_t data_tokens(const struct data *d)
{
	return d->tokens;
}

uint64_t data_samples(const struct data *d)
{
	return d->samples;
}

const char *data_digest(const struct data *d)
{
	return d->digest;
}

/* --- samples -------------------------------------------------------------------------------- */

static uint64_t token_at(const struct shard *s, uint64_t position)
{
	const char *at = (const char *)s->map + sizeof(s->header) + position * s->header.token_bytes;
	uint64_t token = 0;

	memcpy(&token, at, s->header.token_bytes);	/* little-endian, as every host of ours */
	return token;
}

static int copy_sample(const struct data *d, const struct shard *s, uint64_t first,
		       int32_t *tokens, int32_t *targets, struct err *err)
{
	for (size_t i = 0; i <= d->seq; i++) {
		uint64_t token = token_at(s, first + i);
		if (token >= d->vocab)
			return err_set(err, ERR_USAGE,
				       "%s: token %" PRIu64 " at %" PRIu64
				       " is outside the vocabulary of %" PRIu64,
				       s->path, token, first + i, d->vocab);
		if (i < d->seq)
			tokens[i] = (int32_t)token;
		if (i > 0)
			targets[i - 1] = (int32_t)token;
	}
	return 0;
}

int data_sample(const struct data *d, uint64_t number, int32_t *tokens, int32_t *targets,
		struct err *err)
{
	const struct rng order = { .seed = d->seed, .stream = RNG_ORDER,
				   .step = (uint32_t)(number / d->samples) };
	uint64_t sample = rng_permute(&order, number % d->samples, d->samples);
	const struct shard *s = d->shard;

	for (; sample >= s->samples; s++)
		sample -= s->samples;
	return copy_sample(d, s, sample * d->seq, tokens, targets, err);
}
