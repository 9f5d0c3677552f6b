/* SPDX-License-Identifier: MIT */
/* retention.h - which checkpoints of a folder stay. */
#ifndef LBWORKER_RETENTION_H
#define LBWORKER_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RETENTION_NEWEST_MIN = 2 }; /* never deleted, whatever the rules say */

/* Pure: is the checkpoint of `step` kept when `newer` ones exist? latest_k 0 = all are. */
bool retention_keeps(int64_t step, size_t newer, int64_t latest_k, int64_t every);

/* Steps of the folders step-NNNNNNNN of `parent`, newest first, owned by the caller; NULL and 0
 * when there is none. */
int64_t *retention_steps(const char *parent, size_t *count);

/* After a save of `step`: removes the folders step-NNNNNNNN of `parent` that are not kept; the rest
 * of the folder is not touched. Later ones stay and count for nothing: the training came from
 * before them, as they were no good. Trouble is a warning: a full house is no reason to stop a
 * training. */
void retention_apply(const char *parent, int64_t step, int64_t latest_k, int64_t every);

#endif
