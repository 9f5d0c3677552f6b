/* SPDX-License-Identifier: MIT */
/* compare.h - the runs of a group side by side: in which settings they differ, and how they do. */
#ifndef DAEMON_RUNS_COMPARE_H
#define DAEMON_RUNS_COMPARE_H

#include "daemon/control/control.h"

json_t *compare_answer(struct request *r, struct err *err);

#endif
