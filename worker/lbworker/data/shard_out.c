/* SPDX-License-Identifier: MIT */
/* shard_out.c - tokens as they come, then the index, the notes, and the header once its counts
 * are known. */
#include "worker/lbworker/data/shard_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/base/scratch.h"
#include "worker/lbworker/data/shard.h"

struct shard_out {
	char *path, *name; /* name: for the time being */
	FILE *file;
	XXH3_state_t *hash;
	struct shard_header header;
	uint64_t *index; /* where documents start */
	uint64_t room;
};

static int put(struct shard_out *o, const void *bytes, size_t count, struct err *err)
{
	XXH3_128bits_update(o->hash, bytes, count);
	if (count > 0 && fwrite(bytes, count, 1, o->file) != 1)
		return err_errno(err, "%s", o->name);
	return 0;
}

static int put_padding(struct shard_out *o, uint64_t bytes, struct err *err)
{
	static const char zeros[8];

	return put(o, zeros, (size_t)(-bytes % 8), err);
}

struct shard_out *shard_out_create(const char *path, uint32_t token_bytes, uint64_t vocab,
				   struct err *err)
{
	struct shard_out *o = xcalloc(1, sizeof(*o));

	o->path = xstrdup(path);
	scratch_sweep_of(path);
	o->name = scratch_name(path, "tmp");
	o->header = (struct shard_header){ .magic = SHARD_MAGIC,
					   .version = SHARD_VERSION,
					   .token_bytes = token_bytes,
					   .vocab = vocab };
	o->hash = XXH3_createState();
	o->file = fopen(o->name, "wbe");
	if (!o->file || !o->hash || fwrite(&o->header, sizeof(o->header), 1, o->file) != 1) {
		err_errno(err, "%s", o->name);
		shard_out_discard(o);
		return NULL;
	}
	XXH3_128bits_reset(o->hash);
	return o;
}

void shard_out_document(struct shard_out *o)
{
	if (o->header.document_count + 1 >= o->room) {
		o->room = o->room ? 2 * o->room : 64;
		o->index = xrealloc(o->index, o->room * sizeof(*o->index));
	}
	o->index[o->header.document_count++] = o->header.token_count;
}

int shard_out_put(struct shard_out *o, const void *tokens, uint64_t count, struct err *err)
{
	o->header.token_count += count;
	return put(o, tokens, (size_t)(count * o->header.token_bytes), err);
}

uint64_t shard_out_tokens(const struct shard_out *o)
{
	return o->header.token_count;
}

uint64_t shard_out_documents(const struct shard_out *o)
{
	return o->header.document_count;
}

static int put_end(struct shard_out *o, const char *notes, struct err *err)
{
	struct shard_header *h = &o->header;
	XXH128_canonical_t digest;

	if (put_padding(o, h->token_count * h->token_bytes, err) ||
	    put(o, o->index, h->document_count * sizeof(*o->index), err) ||
	    put(o, &h->token_count, sizeof(h->token_count), err))
		return -1;
	if (notes) {
		h->version = SHARD_VERSION_NOTES;
		h->notes_bytes = strlen(notes);
		if (put(o, notes, h->notes_bytes, err) || put_padding(o, h->notes_bytes, err))
			return -1;
	}
	XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(o->hash));
	memcpy(h->digest, digest.digest, sizeof(h->digest));
	return 0;
}

int shard_out_finish(struct shard_out *o, const char *notes, struct err *err)
{
	int rc = put_end(o, notes, err);

	if (rc == 0 &&
	    (fseek(o->file, 0, SEEK_SET) != 0 ||
	     fwrite(&o->header, sizeof(o->header), 1, o->file) != 1 || fflush(o->file) != 0 ||
	     fsync(fileno(o->file)) != 0 || rename(o->name, o->path) != 0))
		rc = err_errno(err, "%s", o->path);
	if (rc == 0) {
		free(o->name);
		o->name = NULL;
		/* of a part, the validation's name is on the disk before the training's */
		rc = file_sync_name(o->path, err);
	}
	shard_out_discard(o);
	return rc;
}

void shard_out_discard(struct shard_out *o)
{
	if (!o)
		return;
	if (o->file)
		fclose(o->file);
	if (o->name && o->file)
		unlink(o->name);
	XXH3_freeState(o->hash);
	free(o->index);
	free(o->path);
	free(o->name);
	free(o);
}
