/* SPDX-License-Identifier: MIT */
/* status.h - lbctl daemon status and logs. */
#ifndef CTL_DAEMON_STATUS_H
#define CTL_DAEMON_STATUS_H

#include "ctl/base/command.h"

/* 0: lbd runs, here or elsewhere; else the exit status for "no lbd". */
int daemon_status(struct ctl *ctl, struct err *err);

int daemon_logs(struct ctl *ctl, struct err *err);

#endif
