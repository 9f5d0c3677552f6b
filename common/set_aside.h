/* SPDX-License-Identifier: MIT */
/* set_aside.h - a run that is sent back to an earlier checkpoint leaves the later ones behind.
 *
 * Were they to stay where they are, the next relaunch would find them newest and undo what the
 * person chose. They are moved, never deleted. */
#ifndef COMMON_SET_ASIDE_H
#define COMMON_SET_ASIDE_H

#include <stdint.h>

#include "common/err.h"
#include "common/foreign.h"

/* Moves every checkpoint of `parent` of a step after `step` (`step-N`, or as `foreign` says) into
 * `aside`, a folder on the same file system that is made when there is something to move. The number
 * of folders moved, or -1 with err. Doing it twice is fine. */
int64_t checkpoints_set_aside(const char *parent, struct foreign *foreign, int64_t step,
			      const char *aside, struct err *err);

/* The step of the entry with this name; -1 = it is no checkpoint. */
int64_t checkpoint_step(struct foreign *foreign, const char *name);

#endif
