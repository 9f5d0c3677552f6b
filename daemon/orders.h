/* SPDX-License-Identifier: MIT */
/* orders.h - what people may want of live runs: kill, stop, hold, release. */
#ifndef DAEMON_ORDERS_H
#define DAEMON_ORDERS_H

#include "daemon/control.h"

/* Handlers: the data, or NULL with err. */
json_t *order_kill(struct request *r, struct err *err);
json_t *order_stop(struct request *r, struct err *err);
json_t *order_hold(struct request *r, struct err *err);
json_t *order_release(struct request *r, struct err *err);

/* An event of this run, by this person; not committed. */
void order_event(struct lbd *lbd, int64_t run_id, const char *kind, const char *actor,
		 const char *text);

#endif
