/* SPDX-License-Identifier: MIT */
/* config/ - what people write into files, read and checked: run specs, lbd.toml, training
 * configs.
 *
 * keys.h - configuration as a table: one row per key, read, checked and printed from there.
 *
 * Used for run specs, lbd.toml and lbworker's training configs. A mistake is one line:
 * `file:line: section.key: what is wrong, what is allowed`, with the nearest known key. */
#ifndef COMMON_CONFIG_KEYS_H
#define COMMON_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/config/toml.h"

enum key_type {
	KEY_BOOL,     /* bool */
	KEY_INT,      /* int64_t, within min..max */
	KEY_REAL,     /* double, within min..max */
	KEY_STRING,   /* char *, owned; NULL when unset and no fallback */
	KEY_ENUM,     /* int: index into choices "a|b|c"; "true" and "false" may stand bare */
	KEY_DURATION, /* int64_t ms: a number of seconds, or "90s" "5m" "1h30m" "250ms" */
	KEY_STRINGS,  /* struct key_strings, owned */
	KEY_INTS,     /* struct key_ints, owned */
};

struct key_strings {
	char **items; /* NULL-terminated; NULL when unset */
	size_t count;
};

struct key_ints {
	int64_t *items;
	size_t count;
};

struct key {
	const char *section; /* "restart"; dots for nested tables ("training.data") */
	const char *name;    /* "backoff_first" */
	enum key_type type;
	size_t offset;        /* of the field in the struct that keys_read fills */
	double min, max;      /* numbers and durations (in ms); both 0 = any */
	const char *choices;  /* KEY_ENUM */
	const char *fallback; /* the default as JSON, quotes optional; NULL = zero */
	const char *help;     /* one line, for who reads the table; no program shows it */
};

/* Rows by name. In front of the table: #define KEYS_OF struct config, which keys_read is to fill;
 * `field` is a member of it. */
/* clang-format off */
#define KEY_ROW(section_, name_, type_, field, ...) \
	{ .section = (section_), .name = (name_), .type = (type_), \
	  .offset = offsetof(KEYS_OF, field), __VA_ARGS__ }
#define KEY_FLAG(section, name, field, fallback_, help_) \
	KEY_ROW(section, name, KEY_BOOL, field, .fallback = (fallback_), .help = (help_))
#define KEY_INT(section, name, field, min_, max_, fallback_, help_) \
	KEY_ROW(section, name, KEY_INT, field, .min = (min_), .max = (max_), \
		.fallback = (fallback_), .help = (help_))
#define KEY_REAL(section, name, field, min_, max_, fallback_, help_) \
	KEY_ROW(section, name, KEY_REAL, field, .min = (min_), .max = (max_), \
		.fallback = (fallback_), .help = (help_))
#define KEY_TEXT(section, name, field, fallback_, help_) \
	KEY_ROW(section, name, KEY_STRING, field, .fallback = (fallback_), .help = (help_))
#define KEY_CHOICE(section, name, field, choices_, fallback_, help_) \
	KEY_ROW(section, name, KEY_ENUM, field, .choices = (choices_), \
		.fallback = (fallback_), .help = (help_))
#define KEY_DURATION(section, name, field, min_ms, max_ms, fallback_, help_) \
	KEY_ROW(section, name, KEY_DURATION, field, .min = (min_ms), .max = (max_ms), \
		.fallback = (fallback_), .help = (help_))
#define KEY_SPAN(section, name, field, fallback_, help_) /* a duration of any length */ \
	KEY_ROW(section, name, KEY_DURATION, field, .fallback = (fallback_), .help = (help_))
#define KEY_LIST(section, name, field, fallback_, help_) \
	KEY_ROW(section, name, KEY_STRINGS, field, .fallback = (fallback_), .help = (help_))
#define KEY_NUMBERS(section, name, field, min_, max_, fallback_, help_) \
	KEY_ROW(section, name, KEY_INTS, field, .min = (min_), .max = (max_), \
		.fallback = (fallback_), .help = (help_))
/* clang-format on */

/* Fills *out (zeroed by the caller) from the document: first every fallback, then what the
 * document says. Keys of the document that no row names are left for keys_unknown. An integer is
 * fine where a string is wanted (`--set run.name=7`). On failure *out holds nothing to clear. */
int keys_read(const struct key *table, size_t count, const struct toml *toml, void *out,
	      struct err *err);

/* Refuses the first key or section of the document that no table row names. Sections in
 * `ignored` (NULL-terminated list, may be NULL) are passed over whole. */
int keys_unknown(const struct key *table, size_t count, const struct toml *toml,
		 const char *const *ignored, struct err *err);

/* For checks that a table cannot express: `file:line: path: what` (ERR_USAGE), with what toml_where
 * says of the path. */
int keys_refuse(const struct toml *toml, const char *path, const char *what, struct err *err);

/* Releases what keys_read allocated in *out; the struct may then be zeroed and read again. */
void keys_clear(const struct key *table, size_t count, void *out);

/* Prints the effective values as TOML, section by section. */
void keys_print(const struct key *table, size_t count, const void *values, FILE *to);

/* "1h30m" → milliseconds; -1 with err when it is no duration. */
int duration_parse(const char *text, int64_t *out_ms, struct err *err);

/* The candidate closest to `word` by edit distance, or NULL when none is near enough to be a
 * helpful guess; never the word itself. Borrowed. */
const char *nearest(const char *word, const char *const *candidates, size_t count);

#endif
