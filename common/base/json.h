/* SPDX-License-Identifier: MIT */
/* json.h - the little that jansson leaves to us: bounded parsing and typed getters.
 *
 * All JSON that comes from outside goes through js_parse: strict RFC 8259, valid UTF-8, no
 * duplicate keys (but for texts to train on: js_parse_data), nesting at most JS_MAX_DEPTH (jansson
 * alone would recurse 2048 deep). */
#ifndef COMMON_BASE_JSON_H
#define COMMON_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "common/base/err.h"

enum { JS_MAX_DEPTH = 32 };

/* One value in text[0..len). NULL with err (ERR_USAGE) otherwise; the caller decrefs. */
json_t *js_parse(const char *text, size_t len, struct err *err);
/* A record of data as other programs write it, of which only texts are of interest: with U+0000 in
 * them, beside numbers of any size, NaN and Infinity (as 0), and names twice (the last counts). */
json_t *js_parse_data(const char *text, size_t len, struct err *err);
/* The whole file; at most max_bytes. */
json_t *js_load(const char *path, size_t max_bytes, struct err *err);
/* The value, which they take, as a line without a newline, mode 0640: as file_write_atomic, and as
 * file_write_visible. */
int js_save(const char *path, json_t *value, struct err *err);
int js_save_visible(const char *path, json_t *value, struct err *err);

/* Borrowed member of an object, or the fallback when it is absent, null or of another type. */
const char *js_str(const json_t *object, const char *key, const char *fallback);
/* Reals are truncated. */
int64_t js_int(const json_t *object, const char *key, int64_t fallback);
double js_real(const json_t *object, const char *key, double fallback);
bool js_bool(const json_t *object, const char *key, bool fallback);

/* Setters that turn "unknown" into null: NULL text, NaN or infinite reals, JS_NONE integers.
 * Text that is no UTF-8 is cleaned first. */
#define JS_NONE INT64_MIN
void js_set_str(json_t *object, const char *key, const char *text);
void js_set_int(json_t *object, const char *key, int64_t value);
void js_set_real(json_t *object, const char *key, double value);
void js_set_bool(json_t *object, const char *key, bool value);
/* value <= 0 becomes null; milliseconds become seconds since the epoch (a real with ms). */
void js_set_time(json_t *object, const char *key, int64_t time_ms);

/* Takes the list; a new one in the order of `compare`, which gets pointers to json_t *. */
json_t *js_sorted(json_t *list, int (*compare)(const void *, const void *));

/* Compact text on one line, without the newline; owned by the caller. */
char *js_line(const json_t *value);

#endif
