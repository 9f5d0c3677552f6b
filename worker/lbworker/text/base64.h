/* SPDX-License-Identifier: MIT */
/* base64.h - bytes that files of tokens write as text. */
#ifndef LBWORKER_BASE64_H
#define LBWORKER_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* text[0..len) from base64 into out, which has room for as many bytes; false when it is none, or
 * empty. */
bool from_base64(const char *text, size_t len, char *out, size_t *out_len);

#endif
