/* SPDX-License-Identifier: MIT */
/* goodput_sums.h - goodput of many runs, summed. */
#ifndef CTL_LOOK_GOODPUT_SUMS_H
#define CTL_LOOK_GOODPUT_SUMS_H

#include "ctl/base/command.h"

/* How far back --since reaches, 0: all. Parts of a second count as a whole one: "500ms" is not
 * all. */
int64_t goodput_since_s(const struct ctl *ctl);

/* A row for each of options.by (run, group, owner, week, team; NULL: run) of the runs that the
 * operands name, or with options.team of all that the team is told of, as a table or, with
 * options.csv, as CSV. -1 with err. */
int goodput_sums(struct ctl *ctl, struct err *err);

#endif
