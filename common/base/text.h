/* SPDX-License-Identifier: MIT */
/* text.h - text from outside, made safe for one line on a terminal or in a log. */
#ifndef COMMON_BASE_TEXT_H
#define COMMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed UTF-8 character at text[0..len), 0 when it is none. */
size_t text_utf8_step(const char *text, size_t len);
bool text_is_utf8(const char *text, size_t len);

bool text_begins_with(const char *text, const char *begin);
bool text_ends_with(const char *text, const char *end);
/* Decimal digits in a row that it begins with. */
size_t text_digits(const char *text);
/* Digits alone, and at least one. */
bool text_is_digits(const char *text);
/* Behind the last line feed, or all of it. */
const char *text_last_line(const char *text);

/* Goes through `text` in place, character by character, by what `fate` says of each; a byte that is
 * no UTF-8 becomes '?'. `fate` may lengthen *len where it drops more than one character. */
enum text_fate { TEXT_KEEP, TEXT_MASK, TEXT_DROP };
typedef enum text_fate text_fate_of(const char *at, size_t *len, unsigned how);
void text_filter(char *text, text_fate_of *fate, unsigned how);

/* As much of `text` as fits into out[size], with its NUL: what snprintf of "%s" does, in a tenth of
 * the time. */
void text_copy(char *out, size_t size, const char *text);

/* *kept, which is owned, becomes a copy of `text` unless it is one. */
void text_keep(char **kept, const char *text);

/* Replaces, in place, control characters (C0, DEL, C1) and bytes that are no UTF-8 by '?', but tabs
 * by blanks. */
void text_clean(char *text);

/* What stands in HTML and XML for a character that is theirs; NULL where it stands for itself. */
const char *text_entity(char c);

/* With each "%" doubled: as the name of a file for those who fill something in behind one, Slurm and
 * nsys. Owned by the caller. */
char *text_percents(const char *text);

/* "PATH: text", or just the text where that names the path itself. Owned by the caller. */
char *text_about(const char *path, const char *text);

/* The number that text[0..len) is, as people and programs print it: "1,234" and "1_234" are
 * numbers, too, and so are nan and inf. */
bool text_number(const char *text, size_t len, double *out);

#endif
