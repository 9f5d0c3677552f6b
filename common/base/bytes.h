/* SPDX-License-Identifier: MIT */
/* bytes.h - strings that need not be UTF-8, carried through JSON.
 *
 * The arguments of a command, paths and values of the environment may be any bytes, JSON text may
 * not. What is UTF-8 travels as a plain string, all else as {"hex":"…"}. */
#ifndef COMMON_BASE_BYTES_H
#define COMMON_BASE_BYTES_H

#include <jansson.h>

/* A new reference for the NUL-terminated string s. */
json_t *js_bytes(const char *s);
/* A NULL-terminated list of them as an array; NULL is an empty one. A new reference. */
json_t *js_words(char *const *list);

/* The string back, owned by the caller; NULL when v is neither a string nor {"hex":…}, or holds a
 * NUL byte, which no C string could carry. */
char *js_bytes_take(const json_t *v);

/* The same for the keys of objects (names of variables): what is not UTF-8, or begins with "=",
 * which no name of a variable can, becomes "=" and its hex. Owned by the caller; take gives NULL
 * for an "=" that no hex follows. */
char *js_bytes_key(const char *s);
char *js_bytes_key_take(const char *key);

#endif
