/* SPDX-License-Identifier: MIT */
/* goodput_view.h - the answer to `lbctl goodput`. */
#ifndef DAEMON_RUNS_GOODPUT_VIEW_H
#define DAEMON_RUNS_GOODPUT_VIEW_H

#include "daemon/control/control.h"

json_t *goodput_answer(struct request *r, struct err *err);

#endif
