/* SPDX-License-Identifier: MIT */
/* split_regex.h - a pattern of which nobody has written down the words, by PCRE2. */
#ifndef LBWORKER_SPLIT_REGEX_H
#define LBWORKER_SPLIT_REGEX_H

#include "common/base/err.h"

struct split_regex;

/* NULL with err when the pattern is none. */
struct split_regex *split_regex_create(const char *pattern, struct err *err);
void split_regex_destroy(struct split_regex *regex); /* NULL is fine */

/* Behind the match that begins at `at`; where none begins, where the next one does, or `end`.
 * NULL: it takes too long. From `at` to `end` is UTF-8. */
const unsigned char *split_regex_word(const struct split_regex *regex, const unsigned char *at,
				      const unsigned char *end);

#endif
