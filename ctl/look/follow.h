/* SPDX-License-Identifier: MIT */
/* follow.h - watches a run. */
#ifndef CTL_LOOK_FOLLOW_H
#define CTL_LOOK_FOLLOW_H

#include <stdbool.h>

struct ctl;
struct err;

/* Shows a run until it is final; `fresh`: it was just submitted, show everything. The exit status,
 * or -1 with err. */
int follow_show(struct ctl *ctl, const char *run, bool fresh, struct err *err);
/* As sbatch --wait: says nothing until the run is final. The exit status: 0 when it completed, else
 * that of its last attempt, 1 where that has none; or -1 with err. */
int wait_as_sbatch(struct ctl *ctl, const char *run, struct err *err);

#endif
