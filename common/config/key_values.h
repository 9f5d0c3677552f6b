/* SPDX-License-Identifier: MIT */
/* key_values.h - the value of one key, by its type. */
#ifndef COMMON_CONFIG_KEY_VALUES_H
#define COMMON_CONFIG_KEY_VALUES_H

#include <jansson.h>

#include "common/config/keys.h"

enum { KEY_WHAT_BYTES = 320 };

/* Into the key's field of *out; -1: the value is none for it. what: what must be there, set by
 * either. */
int key_read(const struct key *key, const json_t *value, void *out, char what[KEY_WHAT_BYTES]);

/* Releases what key_read allocated for it in *out. */
void key_clear(const struct key *key, void *out);

/* The value in *values as key_read takes it, the caller's; NULL: it is unset. */
json_t *key_json(const struct key *key, const void *values);

#endif
