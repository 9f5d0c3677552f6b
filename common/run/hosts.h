/* SPDX-License-Identifier: MIT */
/* hosts.h - Slurm's short form of host names, written out. */
#ifndef COMMON_RUN_HOSTS_H
#define COMMON_RUN_HOSTS_H

#include <jansson.h>
#include <stdbool.h>

enum { HOSTS_MAX = 4096, HOSTS_TEXT_BYTES = 1 << 18 };

/* "a,n[1-3,07]x" → ["a","n1x","n2x","n3x","n07x"]; of several pairs of brackets in a name all. What
 * cannot be read ("n[3-1]", "n[x]") is kept as it is, brackets and all; at most HOSTS_MAX names, which
 * HOSTS_TEXT_BYTES hold as text. NULL: none. A new reference. */
json_t *hosts_expand(const char *text);

/* Is that name, by itself, among those that the short form means? NULL: none is. */
bool hosts_have(const char *text, const char *name);

/* The way back, short: ["a","n1","n2","n3"] → "a,n[1-3]". Neighbours only, in their order. A name
 * that does not fit into `limit` bytes is left out whole: half of it would be another's. Items that
 * are no strings are passed over; NULL counts as empty. Owned by the caller. */
char *hosts_fold(const json_t *names, size_t limit);

#endif
