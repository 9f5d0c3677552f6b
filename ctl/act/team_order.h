/* SPDX-License-Identifier: MIT */
/* team_order.h - orders to a colleague's run. */
#ifndef CTL_ACT_TEAM_ORDER_H
#define CTL_ACT_TEAM_ORDER_H

#include <stdbool.h>

#include "common/team/switches.h"

struct ctl;
struct err;

/* Leaves a switch for OWNER/NAME where its lbd says; `release` takes that switch away. -1 with
 * err. */
int team_order(struct ctl *ctl, const char *word, enum switch_level level, bool release,
	       struct err *err);

#endif
