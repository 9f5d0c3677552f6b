/* SPDX-License-Identifier: MIT */
/* restart.h - a finished or held run again: from where, and with which settings. */
#ifndef DAEMON_RUNS_RESTART_H
#define DAEMON_RUNS_RESTART_H

#include "daemon/control/control.h"

/* Answers the request, at once or after lbworker has checked a training config. */
void restart_run(struct request *request);

#endif
