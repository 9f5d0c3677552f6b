/* SPDX-License-Identifier: MIT */
/* sock.h - Unix stream sockets at paths of any length.
 *
 * sun_path holds 107 bytes; a longer path is reached through /proc/self/fd/N of its folder. */
#ifndef COMMON_BASE_SOCK_H
#define COMMON_BASE_SOCK_H

#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"

/* A listening, non-blocking, close-on-exec socket with the mode given, or -1 with err. A socket
 * file that nobody listens on any more is replaced; a live one gives ERR_LOCKED. */
int sock_listen(const char *path, mode_t mode, struct err *err);

/* The mode of a socket's file, never of what a link leads to: fchmodat(AT_SYMLINK_NOFOLLOW), which
 * glibc before 2.32 does not do. -1 with errno. */
int sock_set_mode(const char *path, mode_t mode);

/* A connected, blocking, close-on-exec socket, or -1 with err: ERR_DAEMON when nobody listens,
 * ERR_TIMEOUT when nobody accepted for `patience_ms`, because the backlog of a frozen listener is
 * full. */
int sock_connect(const char *path, int64_t patience_ms, struct err *err);

#endif
