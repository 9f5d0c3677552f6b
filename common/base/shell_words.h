/* SPDX-License-Identifier: MIT */
/* shell_words.h - a command line taken apart as a shell would, without being one; and a word put as
 * a shell takes it. */
#ifndef COMMON_BASE_SHELL_WORDS_H
#define COMMON_BASE_SHELL_WORDS_H

#include "common/base/err.h"

/* Words are separated by blanks; '…' keeps everything, "…" all but \" and \\, a backslash keeps the
 * next character. What a shell would act upon (| & ; < > ( ) $ `) is refused where it is not
 * quoted: it would silently mean something else here. NULL-terminated, owned (strv_free); NULL with
 * ERR_USAGE. An empty text gives an empty list. */
char **shell_words(const char *text, struct err *err);

enum { SHELL_WORD_BYTES = 8192 };
/* `text` as one word of a command that a person is to type: bare where that is the same, else in
 * quotes. So is a long one: where a message is cut, an open quote is left, and no other path. */
const char *shell_word(const char *text, char out[SHELL_WORD_BYTES]);

#endif
