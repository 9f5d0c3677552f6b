/* SPDX-License-Identifier: MIT */
/* run_row.h - a run as `ls` shows it. */
#ifndef CTL_LOOK_RUN_ROW_H
#define CTL_LOOK_RUN_ROW_H

#include <jansson.h>
#include <stdbool.h>

#include "ctl/base/text.h"

struct ctl;
struct err;

enum { RUN_COLUMNS = 7 };
extern const struct column run_columns[RUN_COLUMNS];
void fill_run(struct cell *row, const json_t *run, const struct style *style);
/* Does the command line ask for some runs only? */
bool ls_is_of_some(const struct ctl *ctl);
/* ls --team; the exit status, or -1 with err. */
int ls_team(struct ctl *ctl, struct err *err);

#endif
