/* SPDX-License-Identifier: MIT */
/* guarded.h - files that are acted upon as their owner's word: nobody else may be able to change
 * them, nor to put others in their place.
 *
 * As sshd's StrictModes: the file, and each folder on the way to it, belongs to the user or to
 * root, and neither its group nor others can write to it. A folder on the way may be written to by
 * others when it is sticky, as /tmp is. A group may write when it is the user's own: their primary
 * group, of their name, with nobody else in it (so umask 002 with user-private groups is fine), and
 * the file has no access list, by which others may.
 *
 * What is checked is the open descriptor and the folders that the kernel says it lies in; so what
 * is read from it, or done to it, is what was checked. */
#ifndef COMMON_BASE_GUARDED_H
#define COMMON_BASE_GUARDED_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/err.h"

/* open(2) with these flags, and checks it as a file or folder of `uid`. Never waits. A descriptor,
 * or -1 with err: ERR_NOT_FOUND, ERR_REFUSED (what others could do, and what ends it),
 * ERR_IO. */
int guarded_open(const char *path, int flags, uid_t uid, struct err *err);

/* The whole of a regular file of this process's user, as file_read does. NULL with err. */
char *guarded_read(const char *path, size_t max_bytes, size_t *out_len, struct err *err);

/* What is open already; `path` is for messages. Alone: whatever folders it lies in. */
int guarded_check(int fd, const char *path, uid_t uid, struct err *err);
int guarded_check_alone(int fd, const char *path, uid_t uid, struct err *err);

#endif
