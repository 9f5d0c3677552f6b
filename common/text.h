/* SPDX-License-Identifier: MIT */
/* text.h - text from outside, made safe for one line on a terminal or in a log. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed UTF-8 character at text[0..len), 0 when it is none. */
size_t text_utf8_step(const char *text, size_t len);
bool text_is_utf8(const char *text, size_t len);

/* Replaces, in place, control characters (C0, DEL, C1) and bytes that are no UTF-8 by '?'. */
void text_clean(char *text);

#endif
