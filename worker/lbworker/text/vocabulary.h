/* SPDX-License-Identifier: MIT */
/* vocabulary.h - the bytes that each token stands for, and which token stands for some bytes. */
#ifndef LBWORKER_VOCABULARY_H
#define LBWORKER_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VOCABULARY_MAX = 1 << 22 }; /* tokens */
static const uint32_t NO_TOKEN = UINT32_MAX;

struct vocabulary { /* all zero: empty */
	struct word {
		char *bytes; /* owned; NULL: the number is not used */
		size_t len;
	} * word;           /* by token */
	size_t count, room; /* count: the highest number, and one */
	uint32_t *slot;     /* hash table, NO_TOKEN where free */
	size_t slots, used;
};

void vocabulary_fini(struct vocabulary *v);
/* False when the number is taken or not below VOCABULARY_MAX. Where several have the same bytes,
 * the first one is found. */
bool vocabulary_add(struct vocabulary *v, uint32_t token, const char *bytes, size_t len);
/* The same, but it is not found by its bytes: no text has it. */
bool vocabulary_add_name(struct vocabulary *v, uint32_t token, const char *bytes, size_t len);
/* NO_TOKEN when there is none. */
uint32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t len);
/* Borrowed; NULL when the number is not used. */
const char *vocabulary_bytes(const struct vocabulary *v, uint32_t token, size_t *len);

#endif
