/* SPDX-License-Identifier: MIT */
/* set_aside.h - a run that is sent back to an earlier checkpoint leaves the later ones behind.
 *
 * Were they to stay where they are, the next relaunch would find them newest and undo what the
 * person chose. They are moved, never deleted. */
#ifndef COMMON_SET_ASIDE_H
#define COMMON_SET_ASIDE_H

#include <stdint.h>

#include "common/err.h"

/* Moves every `step-N` of `parent` with N > step into `aside`, a folder on the same file system that
 * is made when there is something to move. The number of folders moved, or -1 with err. Doing it
 * twice is fine. */
int64_t checkpoints_set_aside(const char *parent, int64_t step, const char *aside, struct err *err);

#endif
