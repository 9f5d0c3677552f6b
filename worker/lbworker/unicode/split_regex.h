/* SPDX-License-Identifier: MIT */
/* split_regex.h - a pattern of which nobody has written down the words, by PCRE2. Patterns are
 * those of Oniguruma in its Ruby dialect, as Hugging Face's library reads them: what PCRE2 would
 * read otherwise is put into its words, or refused. */
#ifndef LBWORKER_SPLIT_REGEX_H
#define LBWORKER_SPLIT_REGEX_H

#include <stdbool.h>

#include "common/base/err.h"

/* Within a class: what \w is in Rust's regular expressions: alphabetic, or a mark, a digit, what
 * connects or joins. */
#define SPLIT_RUST_WORD \
	"\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}" \
	"\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

struct split_regex;

/* NULL with err when the pattern is none, or says what cannot be done. */
struct split_regex *split_regex_create(const char *pattern, struct err *err);
void split_regex_destroy(struct split_regex *regex); /* NULL is fine */

/* Behind the match that begins at `at`; where none begins, where the next one does, or `end`.
 * NULL: it takes too long. From `at` to `end` is UTF-8. */
const unsigned char *split_regex_piece(const struct split_regex *regex, const unsigned char *at,
				       const unsigned char *end, bool *is_match);

#endif
