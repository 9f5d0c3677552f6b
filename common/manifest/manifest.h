/* SPDX-License-Identifier: MIT */
/* manifest/ - checkpoints and files of ours: whole if their digests say so.
 *
 * manifest.h - what makes a checkpoint folder valid, and how to find the newest valid one.
 *
 * A checkpoint is a folder `step-NNNNNNNN` whose `manifest.json` lists every other file with its
 * size and XXH3-128 digest. The writer fills `step-NNNNNNNN.tmp-<pid>`, syncs each file, writes
 * the manifest last, syncs the folder, and renames it into place: a folder without `.tmp` and
 * with a manifest that holds is complete, whatever was killed when. */
#ifndef COMMON_MANIFEST_MANIFEST_H
#define COMMON_MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { MANIFEST_FORMAT = 1, MANIFEST_MAX_FILES = 65536 };

struct manifest_file {
	char *name; /* relative to the folder; no '/' in front, no ".." */
	int64_t bytes;
	char digest[33]; /* XXH3-128, lower-case hex; "" = not known yet */
};

struct manifest {
	int64_t step;
	int64_t tokens; /* trained so far */
	int64_t world_size;
	char config_hash[33]; /* of the training config that wrote it; "" if unknown */
	int64_t attempt;      /* LB_ATTEMPT of the writer, 0 outside lbrun: fencing */
	struct manifest_file *files;
	int file_count;
};

/* Publishes a finished folder: for every file of m->files it stats `tmp_folder`/name, fills in
 * bytes and digest, fsyncs it; then manifest.json, fsync, and rename to `folder`. A file that has
 * its digest already was synced by whoever read it, and only its size is compared. On failure the
 * earlier checkpoints are untouched and tmp_folder is left for the caller to remove. */
int manifest_publish(const char *tmp_folder, const char *folder, struct manifest *m,
		     struct err *err);

/* One file of such a folder, which is open: size, digest, synced with the folder that holds it. */
int manifest_seal_file(int folder, struct manifest_file *file, struct err *err);

/* MANIFEST_SIZES compares names and sizes; MANIFEST_DIGESTS reads every byte.
 * *out (may be NULL) is to be released with manifest_clear. err names the file at fault. */
enum manifest_depth { MANIFEST_SIZES, MANIFEST_DIGESTS };
int manifest_verify(const char *folder, enum manifest_depth depth, struct manifest *out,
		    struct err *err);
void manifest_clear(struct manifest *m);

/* Digest of one file as manifest.json holds it. */
int manifest_digest_file(const char *path, char digest[33], int64_t *out_bytes, struct err *err);

struct checkpoint_found {
	char path[4096];
	int64_t step;
};

/* Looks for the newest checkpoint of `parent` whose digests hold, newest first. Each one that does
 * not is told to on_bad (may be NULL) and passed over, never touched.
 * 1 found; 0 there are no candidates at all (start from scratch); -1 candidates exist but none is
 * valid, or the folder cannot be read: never start from step 0 then. A missing folder counts as
 * empty. */
int checkpoint_newest_valid(const char *parent, struct checkpoint_found *out,
			    void (*on_bad)(const char *path, const struct err *why, void *arg),
			    void *arg, struct err *err);

#endif
