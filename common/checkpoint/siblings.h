/* SPDX-License-Identifier: MIT */
/* siblings.h - the step of a checkpoint, by its name and by what lies beside it. */
#ifndef COMMON_CHECKPOINT_SIBLINGS_H
#define COMMON_CHECKPOINT_SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

/* As step_in_name, but of several numbers in a row one that differs among those called alike:
 * beside epoch_6_224.pth, epoch_5_224.pth is of step 5. *is_in_epoch (may be NULL): the last one
 * begins again with each of the first, as in "net-2_125" behind "net-1_1875". -1 = there is none. */
int64_t step_beside_siblings(const char *folder, const char *name, bool *is_in_epoch);

#endif
