/* SPDX-License-Identifier: MIT */
/* shard_writer.c - plain text to a byte-level shard: one document per file, one token per byte. And
 * token files of other formats to one shard of ours.
 *
 * The shard is written beside its name and renamed at the end, so a reader never sees half. */
#include "worker/lbworker/data/data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/mem.h"
#include "worker/lbworker/data/shard.h"

enum { COPY_BYTES = 1 << 16, BYTE_VOCAB = 256 };

/* What is to be written, and how far it is. */
struct recipe {
	char *const *files; /* of text; NULL: shards */
	struct shard *shards;
	size_t count;           /* of either */
	int64_t document_start; /* of shards: this token begins a document; -1: the file does */
	uint32_t token_bytes;
	uint64_t vocab;
	uint64_t *index; /* where documents start */
	uint64_t documents, room;
};

struct writer {
	FILE *out;
	char *path; /* the temporary name */
	XXH3_state_t *hash;
	uint64_t tokens;
};

static int put(struct writer *w, const void *bytes, size_t count, struct err *err)
{
	XXH3_128bits_update(w->hash, bytes, count);
	if (count > 0 && fwrite(bytes, count, 1, w->out) != 1)
		return err_errno(err, "%s", w->path);
	return 0;
}

static int put_file(struct writer *w, const char *path, struct err *err)
{
	char *bytes = xmalloc(COPY_BYTES);
	FILE *in = fopen(path, "rbe");
	int rc = in ? 0 : err_errno(err, "%s", path);
	size_t count;

	while (rc == 0 && (count = fread(bytes, 1, COPY_BYTES, in)) > 0) {
		rc = put(w, bytes, count, err);
		w->tokens += count;
	}
	if (rc == 0 && ferror(in))
		rc = err_errno(err, "%s", path);
	if (in)
		fclose(in);
	free(bytes);
	return rc;
}

/* A document starts at the present token, unless one does already. */
static void start_document(struct recipe *p, const struct writer *w)
{
	if (p->documents > 0 && p->index[p->documents - 1] == w->tokens)
		return;
	if (p->documents + 1 >= p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->index = xrealloc(p->index, p->room * sizeof(*p->index));
	}
	p->index[p->documents++] = w->tokens;
}

static int put_shard(struct recipe *p, struct writer *w, const struct shard *s, struct err *err)
{
	enum { BATCH = COPY_BYTES / 4 };
	unsigned char *bytes = xmalloc(COPY_BYTES);
	size_t count = 0;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < s->token_count; i++) {
		uint64_t token = shard_token(s, i);
		if (p->document_start >= 0 && token == (uint64_t)p->document_start)
			start_document(p, w);
		memcpy(bytes + count * p->token_bytes, &token, p->token_bytes);
		w->tokens++;
		if (++count == BATCH || i + 1 == s->token_count) {
			rc = put(w, bytes, count * p->token_bytes, err);
			count = 0;
		}
	}
	free(bytes);
	return rc;
}

static int put_parts(struct recipe *p, struct writer *w, struct err *err)
{
	for (size_t i = 0; i < p->count; i++) {
		if (p->files) { /* an empty text is a document, too */
			p->index = xrealloc(p->index, (i + 2) * sizeof(*p->index));
			p->index[p->documents++] = w->tokens;
		} else {
			start_document(p, w);
		}
		if (p->files ? put_file(w, p->files[i], err) : put_shard(p, w, &p->shards[i], err))
			return -1;
	}
	p->index[p->documents] = w->tokens;
	return 0;
}

static int put_all(struct recipe *p, struct writer *w, struct err *err)
{
	static const char zeros[8];
	struct shard_header header = { .magic = { 'L', 'B', 'T', 'O', 'K', 'E', 'N', 'S' },
				       .version = SHARD_VERSION,
				       .token_bytes = p->token_bytes,
				       .vocab = p->vocab };
	XXH128_canonical_t digest;

	if (fwrite(&header, sizeof(header), 1, w->out) != 1)
		return err_errno(err, "%s", w->path);
	if (put_parts(p, w, err) ||
	    put(w, zeros, (size_t)(-(w->tokens * p->token_bytes) % 8), err) ||
	    put(w, p->index, (p->documents + 1) * sizeof(*p->index), err))
		return -1;
	header.token_count = w->tokens;
	header.document_count = p->documents;
	XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(w->hash));
	memcpy(header.digest, digest.digest, sizeof(header.digest));
	if (fseek(w->out, 0, SEEK_SET) != 0 || fwrite(&header, sizeof(header), 1, w->out) != 1 ||
	    fflush(w->out) != 0 || fsync(fileno(w->out)) != 0)
		return err_errno(err, "%s", w->path);
	return 0;
}

static int write_shard(const char *out, struct recipe *p, uint64_t *out_tokens, struct err *err)
{
	struct writer w = { .path = xasprintf("%s.tmp-%ld", out, (long)getpid()) };
	int rc = -1;

	w.hash = XXH3_createState();
	w.out = fopen(w.path, "wbe");
	if (!w.out || !w.hash) {
		err_errno(err, "%s", w.path);
	} else {
		XXH3_128bits_reset(w.hash);
		rc = put_all(p, &w, err);
	}
	if (w.out && fclose(w.out) != 0 && rc == 0)
		rc = err_errno(err, "%s", w.path);
	if (rc == 0 && rename(w.path, out) != 0)
		rc = err_errno(err, "%s", out);
	if (rc != 0 && w.out)
		unlink(w.path);
	XXH3_freeState(w.hash);
	free(w.path);
	free(p->index);
	*out_tokens = w.tokens;
	return rc;
}

int data_prepare(const char *out, char *const *files, size_t count, uint64_t *out_tokens,
		 struct err *err)
{
	struct recipe recipe = { .files = files,
				 .count = count,
				 .document_start = -1,
				 .token_bytes = 1,
				 .vocab = BYTE_VOCAB };

	return write_shard(out, &recipe, out_tokens, err);
}

static int open_shards(struct recipe *p, char *const *files, struct err *err)
{
	p->token_bytes = 1;
	for (size_t i = 0; i < p->count; i++) {
		struct shard *s = &p->shards[i];
		s->path = xstrdup(files[i]);
		if (shard_open(s, UINT64_MAX, true, err))
			return -1;
		if (s->token_bytes > p->token_bytes)
			p->token_bytes = s->token_bytes;
		for (uint64_t k = 0; k < s->token_count; k++)
			if (shard_token(s, k) >= p->vocab)
				p->vocab = shard_token(s, k) + 1;
	}
	if (p->vocab > (uint64_t)UINT32_MAX + 1)
		return err_set(err, ERR_USAGE, "a token is negative, or needs more than 32 bits");
	if (p->token_bytes > sizeof(uint32_t))
		p->token_bytes = sizeof(uint32_t);
	return 0;
}

int data_join(const char *out, char *const *files, size_t count, int64_t document_start,
	      uint64_t *out_tokens, uint64_t *out_documents, struct err *err)
{
	struct recipe recipe = { .count = count,
				 .document_start = document_start,
				 .shards = xcalloc(count, sizeof(struct shard)) };
	int rc = open_shards(&recipe, files, err);

	*out_tokens = 0;
	if (rc == 0)
		rc = write_shard(out, &recipe, out_tokens, err);
	*out_documents = recipe.documents;
	for (size_t i = 0; i < count; i++)
		shard_close(&recipe.shards[i]);
	free(recipe.shards);
	return rc;
}
