/* SPDX-License-Identifier: MIT */
/* steps.h - the step that the name of a checkpoint tells. */
#ifndef COMMON_CHECKPOINT_STEPS_H
#define COMMON_CHECKPOINT_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STEP_DIGITS_MAX = 18 }; /* what has more is no step */

/* The step that a name tells: the number behind "step", else "iter", "ckpt", "epoch", …, else the
 * last number; -1 = none. */
int64_t step_in_name(const char *name);
enum { STEP_CANDIDATES_MAX = 8 };
/* Where in the name the numbers begin of which one is the step, as 224 and 5 in "epoch_5_224.pth":
 * the first one is what step_in_name takes. How many; 0 = there is no doubt. */
size_t step_candidates(const char *name, size_t places[STEP_CANDIDATES_MAX]);
/* "ckpt_0.25": so much of an epoch? That is no step. */
bool name_tells_fraction(const char *name);
/* "ckpt_v2", "state_rank0": the number of a place that may be written again and again, no other? */
bool name_tells_slot(const char *name);
/* "2026-11-27_10-15-00": when it was, and no other number? */
bool name_tells_time(const char *name);
/* "export-bfloat16": the type of its numbers, and no other number? */
bool name_tells_type(const char *name);
/* "20261128T101500-000000000020" */
bool name_begins_with_time(const char *name);
/* Is this number of it such a time, which no trainer tells as its step? */
bool name_step_is_time(const char *name, int64_t step);
/* Has it a number that may be a step? */
bool name_has_number(const char *name);
/* Does a word for steps stand in front of a number ("epoch_3", "ckpt-20")? */
bool name_tells_step(const char *name);
/* Does a word for checkpoints stand in front of its number, or one for steps behind it, as in
 * "ckpt_20", "20_steps"? */
bool name_has_word(const char *name);

#endif
