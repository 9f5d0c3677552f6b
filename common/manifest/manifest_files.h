/* SPDX-License-Identifier: MIT */
/* manifest_files.h - for the files of this room called manifest*.c alone. */
#ifndef COMMON_MANIFEST_MANIFEST_FILES_H
#define COMMON_MANIFEST_MANIFEST_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

extern const char manifest_name[];

bool manifest_name_is_good(const char *name);
/* Opens "a/b/c" below `folder`, following no link anywhere. -1 with errno. With `parent` set the
 * folder that holds the file is opened instead. */
int manifest_open_below(int folder, const char *name, bool parent);
/* An open regular file and its size, or -1 with err. */
int manifest_open(int folder, const char *name, int64_t *bytes, struct err *err);
/* Reads to the end; *bytes is what was read, which is the truth even while a file grows. */
int manifest_digest_fd(int fd, const char *name, char digest[33], int64_t *bytes, struct err *err);

#endif
