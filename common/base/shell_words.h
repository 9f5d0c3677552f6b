/* SPDX-License-Identifier: MIT */
/* shell_words.h - a command line taken apart as a shell would, without being one. */
#ifndef COMMON_BASE_SHELL_WORDS_H
#define COMMON_BASE_SHELL_WORDS_H

#include "common/base/err.h"

/* Words are separated by blanks; '…' keeps everything, "…" all but \" and \\, a backslash keeps the
 * next character. What a shell would act upon (| & ; < > ( ) $ `) is refused where it is not
 * quoted: it would silently mean something else here. NULL-terminated, owned (strv_free); NULL with
 * ERR_USAGE. An empty text gives an empty list. */
char **shell_words(const char *text, struct err *err);

#endif
