/* SPDX-License-Identifier: MIT */
/* orders.h - what people may want of live runs: kill, stop, hold, release. */
#ifndef DAEMON_RUNS_ORDERS_H
#define DAEMON_RUNS_ORDERS_H

#include "daemon/control/control.h"

/* The handler of them all: the data, or NULL with err. */
json_t *order_give(struct request *r, struct err *err);

/* What is wanted of this run, by whom and why, with an event that says so; not committed. The
 * engine (engine_order) is told by the caller. */
int order_write(struct lbd *lbd, int64_t run_id, enum run_order order, const char *event,
		const char *actor, const char *reason, struct err *err);
/* An event of this run, by this person; not committed. */
int order_event(struct lbd *lbd, int64_t run_id, const char *kind, const char *actor,
		const char *text, struct err *err);

#endif
