/* SPDX-License-Identifier: MIT */
/* prepare.c - plain text to a byte-level shard: one document per file, one token per byte.
 *
 * The shard is written beside its name and renamed at the end, so a reader never sees half. */
#include "worker/lbworker/data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/mem.h"

enum { COPY_BYTES = 1 << 16, BYTE_VOCAB = 256 };

struct writer {
	FILE *out;
	char *path;			/* the temporary name */
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

static int put_all(struct writer *w, char *const *files, size_t count, struct err *err)
{
	static const char zeros[8];
	struct shard_header header = { .magic = { 'L', 'B', 'T', 'O', 'K', 'E', 'N', 'S' },
				       .version = SHARD_VERSION, .token_bytes = 1,
				       .document_count = count, .vocab = BYTE_VOCAB };
	uint64_t *index = xcalloc(count + 1, sizeof(*index));
	XXH128_canonical_t digest;
	int rc = fwrite(&header, sizeof(header), 1, w->out) == 1 ? 0 : err_errno(err, "%s", w->path);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		rc = put_file(w, files[i], err);
		index[i + 1] = w->tokens;
	}
	if (rc == 0)
		rc = put(w, zeros, (size_t)(-w->tokens % 8), err);
	if (rc == 0)
		rc = put(w, index, (count + 1) * sizeof(*index), err);
	free(index);
	if (rc)
		return -1;
	header.token_count = w->tokens;
	XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(w->hash));
	memcpy(header.digest, digest.digest, sizeof(header.digest));
	if (fseek(w->out, 0, SEEK_SET) != 0 || fwrite(&header, sizeof(header), 1, w->out) != 1 ||
	    fflush(w->out) != 0 || fsync(fileno(w->out)) != 0)
		return err_errno(err, "%s", w->path);
	return 0;
}

int data_prepare(const char *out, char *const *files, size_t count, uint64_t *out_tokens,
		 struct err *err)
{
	struct writer w = { .path = xasprintf("%s.tmp-%ld", out, (long)getpid()) };
	int rc = -1;

	w.hash = XXH3_createState();
	w.out = fopen(w.path, "wbe");
	if (!w.out || !w.hash) {
		err_errno(err, "%s", w.path);
	} else {
		XXH3_128bits_reset(w.hash);
		rc = put_all(&w, files, count, err);
	}
	if (w.out && fclose(w.out) != 0 && rc == 0)
		rc = err_errno(err, "%s", w.path);
	if (rc == 0 && rename(w.path, out) != 0)
		rc = err_errno(err, "%s", out);
	if (rc != 0 && w.out)
		unlink(w.path);
	XXH3_freeState(w.hash);
	free(w.path);
	*out_tokens = w.tokens;
	return rc;
}
