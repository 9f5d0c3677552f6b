/* SPDX-License-Identifier: MIT */
/* sealed_file.h - a file with its digest beside it, in FILE.xxh3: a bit that turned since is
 * noticed.
 *
 * The first line there is the XXH3-128 of the newest FILE in hex, the next ones are those of the
 * files that it took the place of: the digest is written first, so that whoever dies between the
 * two steps leaves the file before, and a digest that it still has. */
#ifndef COMMON_MANIFEST_SEALED_FILE_H
#define COMMON_MANIFEST_SEALED_FILE_H

#include "common/base/err.h"

/* Renames `made`, which is whole and on the disk, to `path`, with its digest. 0, or -1 with err and
 * the old file in place. */
int sealed_file_place(const char *made, const char *path, struct err *err);

enum seal { SEAL_BROKEN = -1, SEAL_HOLDS, SEAL_MISSING };

/* Reads all of the file. SEAL_BROKEN with err: it is not the file that was sealed, or cannot be
 * read. SEAL_MISSING: there is no digest. */
enum seal sealed_file_check(const char *path, struct err *err);

#endif
