/* SPDX-License-Identifier: MIT */
/* attempt_logs.h - where the output of an attempt is; lbd tells it, and lbctl sees it without
 * lbd. */
#ifndef COMMON_RUN_ATTEMPT_LOGS_H
#define COMMON_RUN_ATTEMPT_LOGS_H

#include <jansson.h>
#include <stdint.h>

/* Appends {"attempt": N, "path": …} for attempts/N in `folder`; of an array one row for each of its
 * tasks that has begun, by number, with "task": K. */
void attempt_logs(const char *folder, int64_t attempt, json_t *list);

#endif
