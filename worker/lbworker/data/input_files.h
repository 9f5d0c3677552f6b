/* SPDX-License-Identifier: MIT */
/* input_files.h - the files that a command line means when it names files and folders. */
#ifndef LBWORKER_INPUT_FILES_H
#define LBWORKER_INPUT_FILES_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/base/strv.h"

/* Adds files as they are named, and for a folder all regular files below it, by name; those that
 * begin with a dot, and those that are no texts (which is told), are left out. A file that is named
 * and of a kind that nobody here reads is an error, too. A name that is nothing, or a folder
 * without files, is an error (ERR_NOT_FOUND); *out is the caller's to release either way. */
int input_files(struct strv *out, char *const *names, size_t count, struct err *err);

/* Says so where all files, of which there are some, are JSON by their names: a data set whose texts
 * were meant, for who read them as they stand. */
void input_tell_json(const struct strv *files);

/* What a file begins with is not gzip's or zstd's, nor of a kind that nobody here reads; who: takes
 * no other than plain text. */
int input_check_plain(const char *path, const char *bytes, size_t count, const char *who,
		      struct err *err);

#endif
