/* SPDX-License-Identifier: MIT */
/* sweep.h - "--sweep optimizer.lr=1e-4,3e-4 --sweep seed=1..3 --sweep data=@list": all combinations
 * of values. What they change is sweep_fill.h's. */
#ifndef CTL_BASE_SWEEP_H
#define CTL_BASE_SWEEP_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"
#include "ctl/base/options.h"

enum { SWEEP_MAX = 1000 };

/* A list of combinations, each a list of "KEY=value", the last key changing fastest. Values are
 * parted by commas outside of brackets and quotes; "1..3" stands for 1, 2, 3; "@FILE" for the lines
 * of a file. NULL with err when a word is no sweep, a key comes twice, or there are more than
 * SWEEP_MAX. */
json_t *sweep_combinations(const struct word_list *words, struct err *err);

#endif
