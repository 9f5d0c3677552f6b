/* SPDX-License-Identifier: MIT */
/* dump.h - what the kernel and, where there is one, a debugger say about processes. May block:
 * for a child with a deadline. */
#ifndef LBRUN_WATCH_DUMP_H
#define LBRUN_WATCH_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* No debugger is started after `until_ms` (monotonic). */
void dump_processes(FILE *out, const pid_t *pids, size_t count, int64_t until_ms);

/* Waits for a child of ours; SIGKILL after so many ms. */
void dump_await(pid_t pid, int64_t ms);

#endif
