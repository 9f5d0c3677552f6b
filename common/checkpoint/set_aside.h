/* SPDX-License-Identifier: MIT */
/* set_aside.h - a run that is sent back to an earlier checkpoint leaves the later ones behind.
 *
 * Were they to stay where they are, the next relaunch would find them newest and undo what the
 * person chose. They are moved, never deleted. */
#ifndef COMMON_CHECKPOINT_SET_ASIDE_H
#define COMMON_CHECKPOINT_SET_ASIDE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/checkpoint/checkpoints.h"

/* Moves every checkpoint of `parent` of a step after `step` (all of them where it is -1), as
 * `rules` tell them, into `aside`, a folder on the same file system that is made when there is
 * something to move. `is_meant` (NULL: all are) is asked of each, and may check it. The number of
 * them, or -1 with err. A file that names such a one as the newest, or a link to it, names that of
 * `step` then, or is moved as well. Doing it twice is fine. */
int64_t
checkpoints_set_aside(const char *parent, const struct checkpoint_rules *rules, int64_t step,
		      bool (*is_meant)(void *arg, struct checkpoint_list *list, size_t index),
		      void *arg, const char *aside, struct err *err);

#endif
