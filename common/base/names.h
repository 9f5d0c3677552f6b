/* SPDX-License-Identifier: MIT */
/* names.h - names of runs: what is allowed, and drawing a memorable one. */
#ifndef COMMON_BASE_NAMES_H
#define COMMON_BASE_NAMES_H

#include <stdint.h>

#include "common/base/err.h"

enum { NAME_MAX_BYTES = 64, TOKEN_HEX = 32 };

/* A name is [A-Za-z0-9][A-Za-z0-9._-]{0,63} without ".."; "ALL" is reserved for switches. One check
 * for all programs, so that a name is always safe as a file name and on a terminal. The message
 * quotes the name with whatever is unprintable escaped, cut to a readable length. */
int name_check(const char *name, struct err *err);

/* "brisk-otter-39" from a random number; the caller draws again while the name is taken. */
void name_draw(uint64_t random, char out[NAME_MAX_BYTES + 1]);

/* 128 random bits as lower-case hex (getrandom). */
void token_draw(char out[TOKEN_HEX + 1]);
uint64_t random_u64(void);

#endif
