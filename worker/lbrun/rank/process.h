/* SPDX-License-Identifier: MIT */
/* process.h - what /proc says of one process: its words, the signals that it catches, whose output
 * it reads. Of one that is gone, or not ours to look at, it says no. */
#ifndef LBRUN_RANK_PROCESS_H
#define LBRUN_RANK_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* /proc/PID/NAME; ends with a zero byte, which does not count. 0 where nothing can be read. */
size_t process_file(pid_t pid, const char *name, char *out, size_t size);
/* Has it a handler for this signal? */
bool process_catches(pid_t pid, int signo);
/* Does it hold the reading end of a pipe that is stdout or stderr of `writer`? */
bool process_reads(pid_t pid, pid_t writer);

#endif
