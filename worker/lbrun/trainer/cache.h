/* SPDX-License-Identifier: MIT */
/* cache.h - compiled code of trainers, kept on the node between starts.
 *
 * The folder is FOLDER/lowbits-UID/cache, for us alone: what lies there is run as us. Everybody of
 * ours on the node shares it, each holds a shared lock as long as its trainer may read there;
 * whoever holds the only one removes the oldest of what is too much, before its trainer starts. A
 * run never fails for want of a cache. */
#ifndef LBRUN_TRAINER_CACHE_H
#define LBRUN_TRAINER_CACHE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/base/strv.h"

/* In the environment of ranks: "BYTES:VARIABLE:…:/FOLDER". */
#define CACHE_VARIABLE "LB_CACHE"

/* So much stays free for others; with less there is no cache. */
#define CACHE_RESERVE_BYTES ((int64_t)1 << 30)

struct cache {
	char *folder; /* NULL = none is open */
	int lock_fd;
};

struct cache_limits {
	int64_t max_bytes;     /* of all that lies there; 0 = no limit */
	int64_t reserve_bytes; /* that stay free on its file system */
};

/* So long one waits for another that makes room; then there is no cache. */
enum { CACHE_WAIT_MS = 20 * 1000 };

/* Makes the folder below `folder`, which must be there and not in others' hands, and makes room,
 * where nobody else has it open. 0, or -1 with err: there is none. */
int cache_open(struct cache *c, const char *folder, const struct cache_limits *limits,
	       struct err *err);
void cache_close(struct cache *c);

/* Points the known variables, and `more` (may be NULL), to folders of the cache, but for those that
 * `env` has. */
void cache_env(const struct cache *c, char *const *more, struct strv *env);

/* For the environment of ranks on other nodes; owned by the caller. */
char *cache_for_ranks(const char *folder, int64_t max_bytes, char *const *more);
/* In front of a rank: does both by CACHE_VARIABLE, for our own environment. What is opened stays
 * so. 0, or -1 with err: without a cache. */
int cache_enter(struct err *err);

/* Removes the oldest items (FOLDER/x/ITEM, by their newest file) until the rest takes at most
 * `max_bytes`; what is left then, in bytes on disk. */
int64_t cache_trim(const char *folder, int64_t max_bytes);

#endif
