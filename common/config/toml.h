/* SPDX-License-Identifier: MIT */
/* toml.h - a TOML document as a JSON tree that remembers its line numbers.
 *
 * toml++ does the parsing (toml.cc, the one C++ file); dates and times become strings. Keys keep
 * the order of the file. */
#ifndef COMMON_CONFIG_TOML_H
#define COMMON_CONFIG_TOML_H

#include <stddef.h>
#include <jansson.h>

#include "common/base/err.h"

struct toml {
	char *file;         /* the name used in messages; owned */
	json_t *root;       /* an object; owned */
	json_t *lines;      /* "section.key" → line number, every table and key; owned */
	const char *option; /* what stands before a key of toml_set in messages; NULL: "--set: " */
};

enum { TOML_ASSIGNED = -1, TOML_WHERE_BYTES = 512 };

/* On failure *out is cleared and err says `file:line: what is wrong` (ERR_USAGE). Text must be
 * UTF-8; at most 1 MiB. Undo both with toml_clear (fine on a zeroed struct). */
int toml_parse(struct toml *out, const char *text, size_t len, const char *file, struct err *err);
int toml_load(struct toml *out, const char *path, struct err *err);
/* Of a file that nobody else may be able to change (guarded.h): else ERR_REFUSED. */
int toml_load_guarded(struct toml *out, const char *path, struct err *err);
void toml_clear(struct toml *toml);

/* Line of a dotted key or table; TOML_ASSIGNED when toml_set gave it, 0 when nobody did. */
int toml_line(const struct toml *toml, const char *dotted_key);
/* The same for people: "file:line: key", "--set: key" or "file: key". Returns out. */
const char *toml_where(const struct toml *toml, const char *dotted_key, char out[TOML_WHERE_BYTES]);

/* Applies `section.key=value` (the form of --set, any depth). The value is read as TOML
 * ("8", "[1,2]", "true", "\"x\""); what is no TOML value is taken as a string as it stands. */
int toml_set(struct toml *toml, const char *assignment, struct err *err);

/* The document as TOML text that parses to the same tree (comments are lost; what toml_set gave is
 * marked by one, and TOML_ASSIGNED again for who reads it); owned by caller. */
char *toml_print(const struct toml *toml);

/* The table that holds the last part of a dotted key, which *name then points to; borrowed, NULL
 * where there is none. */
json_t *toml_table(const struct toml *toml, const char *dotted_key, const char **name);
/* The value of a dotted key; borrowed, NULL when there is none. */
json_t *toml_value(const struct toml *toml, const char *dotted_key);

/* {"optimizer":{"lr":1}} → {"optimizer.lr":1}: adds all keys below `table` to `out`, with `prefix`
 * ("" at the root) in front. */
void toml_flatten(json_t *out, const char *prefix, json_t *table);
#endif
