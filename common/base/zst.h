/* SPDX-License-Identifier: MIT */
/* zst.h - files compressed with zstd, "NAME.zst" beside where NAME was. */
#ifndef COMMON_BASE_ZST_H
#define COMMON_BASE_ZST_H

#include <stddef.h>

#include "common/base/err.h"

/* Writes NAME.zst and removes NAME, in the folder `dir` (a descriptor). The new one is complete and
 * on disk, with owner, mode and time of the old, before that goes. NAME must be a regular file of
 * ours that is no link and has no second name, else ERR_REFUSED and nothing is touched. */
int zst_compress(int dir, const char *name, struct err *err);

/* Hands the text of the compressed file to `each`, piece by piece, until it returns non-zero. A
 * file that ends early gives what there is, then -1 with err. */
int zst_read(const char *path, int (*each)(const char *data, size_t len, void *arg), void *arg,
	     struct err *err);

#endif
