/* SPDX-License-Identifier: MIT */
/* attempt_file.h - what the files of an attempt's folder share: "version" and "token", and that
 * they are there whole or not at all. */
#ifndef COMMON_RUN_ATTEMPT_FILE_H
#define COMMON_RUN_ATTEMPT_FILE_H

#include <stddef.h>
#include <sys/types.h>
#include <jansson.h>

#include "common/base/err.h"
#include "common/base/names.h"

enum { ATTEMPT_FILE_VERSION = 1 };

/* One of common/base/files.h. */
typedef int attempt_file_writer(const char *path, const void *data, size_t len, mode_t mode,
				struct err *err);
/* Takes what it wants from the file's object. */
typedef int attempt_file_filler(const json_t *o, void *out, struct err *err);

/* A new reference. */
json_t *attempt_file_new(const char *token);
/* Takes `o`. */
int attempt_file_write(json_t *o, const char *folder, const char *name, attempt_file_writer *write,
		       struct err *err);
/* Loads it, checks its version, lets `fill` do the rest, and names the file in errors. Most files
 * are awaited on another machine than the one that writes them: it looks for them anew. */
int attempt_file_read(const char *folder, const char *name, attempt_file_filler *fill, void *out,
		      struct err *err);

/* A string member that must fit; a missing one counts as "". */
int attempt_file_text(const json_t *o, const char *key, char *out, size_t size, struct err *err);
int attempt_file_token(const json_t *o, char out[TOKEN_HEX + 1], struct err *err);

#endif
