/* SPDX-License-Identifier: MIT */
/* nodes.h - what the team knows about its nodes, and how it forgets. */
#ifndef DAEMON_RUNS_NODES_H
#define DAEMON_RUNS_NODES_H

#include "daemon/control/control.h"

/* Handlers: the data, or NULL with err. */
json_t *nodes_list(struct request *r, struct err *err);
json_t *nodes_forgive(struct request *r, struct err *err);

#endif
