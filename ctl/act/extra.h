/* SPDX-License-Identifier: MIT */
/* extra.h - settings that a command adds to those of the command line before it submits a run, as
 * if they had been typed behind them with --set. */
#ifndef CTL_ACT_EXTRA_H
#define CTL_ACT_EXTRA_H

#include <stddef.h>

struct ctl;
struct err;

/* Embedded; {0} is empty. */
struct extra {
	char **settings;
	size_t count;
};

/* "section.key=value", which is taken. */
void extra_add(struct extra *extra, char *setting);
/* submit_run, with these settings; ctl's own are as before when it returns. */
int extra_submit(struct ctl *ctl, const struct extra *extra, struct err *err);
void extra_clear(struct extra *extra);

#endif
