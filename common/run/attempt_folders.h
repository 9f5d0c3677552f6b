/* SPDX-License-Identifier: MIT */
/* attempt_folders.h - which attempts of a run have a folder. */
#ifndef COMMON_RUN_ATTEMPT_FOLDERS_H
#define COMMON_RUN_ATTEMPT_FOLDERS_H

#include <stddef.h>
#include <stdint.h>

/* Their numbers, lowest first; owned by the caller. NULL, and none, where there is no folder of
 * attempts. */
int64_t *attempt_folders(const char *run_dir, size_t *count);

#endif
