/* SPDX-License-Identifier: MIT */
/* shard_writer.c - plain text to a byte-level shard: one document per file, one token per byte. And
 * token files of other formats to one shard of ours. */
#include "worker/lbworker/data/data.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/data/input_files.h"
#include "worker/lbworker/data/shard.h"
#include "worker/lbworker/data/shard_out.h"

enum { COPY_BYTES = 1 << 16, BYTE_VOCAB = 256 };

static int put_file(struct shard_out *out, const char *path, struct err *err)
{
	FILE *in = fopen(path, "rbe");
	char *bytes;
	size_t count;
	int rc;

	if (!in)
		return err_errno(err, "%s", path);
	shard_out_document(out); /* an empty text is one, too */
	bytes = xmalloc(COPY_BYTES);
	count = fread(bytes, 1, COPY_BYTES, in);
	rc = input_check_plain(path, bytes, count, "prepare", err);
	for (; rc == 0 && count > 0; count = fread(bytes, 1, COPY_BYTES, in))
		rc = shard_out_put(out, bytes, count, err);
	if (rc == 0 && ferror(in))
		rc = err_errno(err, "%s", path);
	fclose(in);
	free(bytes);
	return rc;
}

int data_prepare(const char *out, char *const *files, size_t count, uint64_t *out_tokens,
		 struct err *err)
{
	struct shard_out *o = shard_out_create(out, 1, BYTE_VOCAB, err);
	int rc = o ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = put_file(o, files[i], err);
	*out_tokens = o ? shard_out_tokens(o) : 0;
	if (rc == 0)
		return shard_out_finish(o, NULL, err);
	shard_out_discard(o);
	return rc;
}

/* --- token files of others -------------------------------------------------------------------- */

struct join {
	struct shard *shards;
	size_t count;
	int64_t document_start; /* this token begins a document; -1: the file does */
	uint32_t token_bytes;
	uint64_t vocab;
};

static int put_shard(const struct join *j, struct shard_out *out, const struct shard *s,
		     struct err *err)
{
	enum { BATCH = COPY_BYTES / 4 };
	unsigned char *bytes = xmalloc(COPY_BYTES);
	uint64_t done = 0;
	int rc = 0;

	shard_out_document(out);
	while (rc == 0 && done < s->token_count) {
		size_t count = 0;
		for (; count < BATCH && done + count < s->token_count; count++) {
			uint64_t token = shard_token(s, done + count);
			bool begins = j->document_start >= 0 &&
				      token == (uint64_t)j->document_start;
			if (begins && done + count > 0 && count > 0)
				break;
			if (begins && done + count > 0)
				shard_out_document(out);
			memcpy(bytes + count * j->token_bytes, &token, j->token_bytes);
		}
		rc = shard_out_put(out, bytes, count, err);
		done += count;
	}
	free(bytes);
	return rc;
}

static int open_shards(struct join *j, char *const *files, struct err *err)
{
	j->token_bytes = 1;
	for (size_t i = 0; i < j->count; i++) {
		struct shard *s = &j->shards[i];
		s->path = xstrdup(files[i]);
		if (shard_open(s, UINT64_MAX, true, err))
			return -1;
		if (s->token_bytes > j->token_bytes)
			j->token_bytes = s->token_bytes;
		for (uint64_t k = 0; k < s->token_count; k++)
			if (shard_token(s, k) >= j->vocab)
				j->vocab = shard_token(s, k) + 1;
	}
	if (j->vocab > (uint64_t)UINT32_MAX + 1)
		return err_set(err, ERR_USAGE, "a token is negative, or needs more than 32 bits");
	if (j->token_bytes > sizeof(uint32_t))
		j->token_bytes = sizeof(uint32_t);
	return 0;
}

static int join(const struct join *j, const char *path, uint64_t *tokens, uint64_t *documents,
		struct err *err)
{
	struct shard_out *out = shard_out_create(path, j->token_bytes, j->vocab, err);
	int rc = out ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < j->count; i++)
		if (j->shards[i].token_count > 0)
			rc = put_shard(j, out, &j->shards[i], err);
	if (rc == 0) {
		*tokens = shard_out_tokens(out);
		*documents = shard_out_documents(out);
		return shard_out_finish(out, NULL, err);
	}
	shard_out_discard(out);
	return rc;
}

int data_join(const char *out, char *const *files, size_t count, int64_t document_start,
	      uint64_t *out_tokens, uint64_t *out_documents, struct err *err)
{
	struct join j = { .count = count,
			  .document_start = document_start,
			  .shards = xcalloc(count, sizeof(struct shard)) };
	int rc = open_shards(&j, files, err);

	*out_tokens = *out_documents = 0;
	if (rc == 0)
		rc = join(&j, out, out_tokens, out_documents, err);
	for (size_t i = 0; i < count; i++)
		shard_close(&j.shards[i]);
	free(j.shards);
	return rc;
}
