/* SPDX-License-Identifier: MIT */
/* program.h - running another program and hearing what it says; no shell in between. */
#ifndef CTL_BASE_PROGRAM_H
#define CTL_BASE_PROGRAM_H

#include <stdint.h>

#include "common/base/err.h"

/* Found along PATH; words NAME=VALUE before it are its environment beside ours. With `out_fd` >= 0
 * that is its standard output. Its exit status, 128 + n after signal n; -1 with err when it cannot
 * be started (ERR_NOT_FOUND: there is no such program). */
int program_run(const char *const argv[], int out_fd, struct err *err);

/* The same, killed after timeout_ms (ERR_TIMEOUT), and when we end. *out is what it wrote, errors
 * too, without the last newline; owned; set in any case. Its standard input is empty. */
int program_output(const char *const argv[], int64_t timeout_ms, char **out, struct err *err);
/* The same with a standard input. */
int program_feed(const char *const argv[], int in_fd, int64_t timeout_ms, char **out,
		 struct err *err);

#endif
