/* SPDX-License-Identifier: MIT */
/* top.h - all runs as a live view wants them: how each goes just now. */
#ifndef DAEMON_RUNS_TOP_H
#define DAEMON_RUNS_TOP_H

#include "daemon/control/control.h"

json_t *top_answer(struct request *r, struct err *err);

#endif
