/* SPDX-License-Identifier: MIT */
/* choice.h - which of the checkpoints that are there a launch begins from. Pure. */
#ifndef LBRUN_CHECKPOINT_CHOICE_H
#define LBRUN_CHECKPOINT_CHOICE_H

#include "common/checkpoint/checkpoints.h"
#include "common/checkpoint/handed.h"

enum { CHOICE_SCRATCH = -1, CHOICE_REFUSED = -2 };

/* Newest first, as they are listed; those that were not checked are not looked at. The index of the
 * newest that is whole and not suspect; where all that are whole are suspect, of the newest of
 * them, once more, rather than from nothing. SCRATCH: there is none, or only what was never
 * finished. REFUSED: there are some, and none is whole: never from step 0 then. */
int64_t checkpoint_choose(const struct checkpoint_list *list, const struct handed *handed);

#endif
