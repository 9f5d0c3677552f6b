/* SPDX-License-Identifier: MIT */
/* regexp.h - regular expressions that people write into their run: PCRE2, bounded in time. */
#ifndef COMMON_BASE_REGEXP_H
#define COMMON_BASE_REGEXP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct regexp;

/* NULL with err (ERR_USAGE) that says where it is wrong. `whole`: must match all of a text. */
struct regexp *regexp_create(const char *pattern, bool whole, struct err *err);
/* Of a pattern that is ours, and right: else the program ends. */
struct regexp *regexp_built_in(const char *pattern);
void regexp_destroy(struct regexp *r);
bool regexp_has_group(const struct regexp *r, const char *name);

/* A text that takes far too long to decide counts as no match. */
bool regexp_match(struct regexp *r, const char *text, size_t len);
/* Where the last match ended, in bytes from the beginning of its text. */
size_t regexp_match_end(const struct regexp *r);
/* Each named group that took part in the last match, which must have succeeded on this text. */
void regexp_each_group(const struct regexp *r, const char *text,
		       void (*each)(void *arg, const char *name, const char *value, size_t len),
		       void *arg);

#endif
