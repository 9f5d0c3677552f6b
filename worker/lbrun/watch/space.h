/* SPDX-License-Identifier: MIT */
/* space.h - is there room for another checkpoint as large as the last one? */
#ifndef LBRUN_WATCH_SPACE_H
#define LBRUN_WATCH_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { SPACE_ENTRIES_MAX = 10000 }; /* of a checkpoint that are looked at */

struct space {
	int64_t bytes;
	int64_t files; /* -1 = no limit */
};

/* What lies at and below `path`. */
struct space space_used(const char *path);
/* What is free where `path` lies; both -1 when it cannot be told. */
struct space space_free(const char *path);
/* `out`: what is missing, in words. */
bool space_is_short(const struct space *need, const struct space *have, char *out, size_t size);
/* Whether a file can be written there at all: quotas and read-only mounts show in nothing else. */
int space_try(const char *folder, struct err *err);

#endif
