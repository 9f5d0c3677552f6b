/* SPDX-License-Identifier: MIT */
/* retention.h - which checkpoints of a run are no longer needed, as a pure function of what there
 * is.
 *
 * The newest two good ones are never among them: valid, and not suspect, as a relaunch would fall
 * back to them. Nor is what is not valid (it may still be being written), nor the newest that is
 * called the best, nor what a link leads to, nor what the caller names. */
#ifndef COMMON_CHECKPOINT_RETENTION_H
#define COMMON_CHECKPOINT_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checkpoint/checkpoints.h"
#include "common/run/retention_rule.h"

enum { RETENTION_LEAST = 2 }; /* good ones that always stay */

/* Does it ask for anything? */
bool retention_is_on(const struct retention *r);

/* Sets goes[i] for each of `list`, newest first and all checked. `needed` (may be NULL) says which
 * must stay whatever else. Returns how many go. For max_bytes the oldest go first, those that
 * keep_every would keep after all others. */
size_t retention_choose(const struct retention *r, const struct checkpoint_list *list,
			bool (*needed)(void *arg, const struct checkpoint *c), void *arg,
			bool *goes);

#endif
