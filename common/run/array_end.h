/* SPDX-License-Identifier: MIT */
/* array_end.h - how the attempt of an array ended, once all its tasks have. */
#ifndef COMMON_RUN_ARRAY_END_H
#define COMMON_RUN_ARRAY_END_H

#include <stddef.h>
#include <stdint.h>

/* Where all `all` tasks have ended, or were cancelled, the attempt has, and its exit record is
 * written in `attempt`, the folder that has theirs. What ends a run weighs most, then what is the
 * run's own fault; of equals the first. Two that do so at once write the same. */
void array_end_write(const char *attempt, int64_t all, const char *token);

/* Those of its tasks, ascending, of which nothing tells that they began in this attempt: moved to
 * the front; so many. */
size_t array_unbegun(const char *attempt, int64_t *tasks, size_t count);

#endif
