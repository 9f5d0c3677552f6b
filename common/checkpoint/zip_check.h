/* SPDX-License-Identifier: MIT */
/* zip_check.h - is a zip archive whole? torch.save and numpy.savez write them.
 *
 * Its directory is written last and at the end: one that was cut short has none. Several may stand
 * behind each other in one file, as torch.distributed.checkpoint writes them. Read as if an
 * enemy wrote it: nothing is unpacked into memory, every number is held against the size of the
 * file. */
#ifndef COMMON_CHECKPOINT_ZIP_CHECK_H
#define COMMON_CHECKPOINT_ZIP_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* How much a look may cost. */
struct look {
	bool is_deep;        /* every byte is read, and held against its checksum */
	int64_t deadline_ms; /* on the monotonic clock, for deep looks; 0 = none */
	bool is_cut_short;   /* out: the deadline came; what was not read counts as good */
};

/* 0 when the open file of `bytes` bytes is a whole archive, or several; else -1 with err, which
 * names the entry. */
int zip_check(int fd, int64_t bytes, struct look *look, struct err *err);

/* The first bytes of the stored (not compressed) entry whose name ends in `suffix`: their number,
 * at most `size`; -1 = there is no such entry. */
int64_t zip_head(int fd, int64_t bytes, const char *suffix, void *out, size_t size);

/* One entry of an archive, whose bytes lie within the file. */
struct zip_entry {
	const char *name; /* its end, where it is very long */
	bool is_stored;   /* as it is, and not in secret */
	uint64_t at, bytes;
};

/* Hands each entry of the last archive in these bytes to `each`, which ends it by returning
 * non-zero. -1 with err; else what `each` returned last, or 0. */
int zip_walk(int fd, int64_t bytes, int (*each)(const struct zip_entry *entry, void *arg),
	     void *arg, struct err *err);

#endif
