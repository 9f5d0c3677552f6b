/* SPDX-License-Identifier: MIT */
/* order.h - attempts/N/order: what a person wants of a running attempt, left by lbd for lbrun.
 *
 *   {"version":1,"order":"stop"|"kill"|"kill_now","by":WHO,"text":WHY[,"goes_on":true]}
 *
 * lbd writes it before it signals lbrun, so that lbrun can tell a person's order (cause killed)
 * from a signal of the scheduler. The file alone is enough: lbrun also looks every 2 s, and an
 * attempt that starts while it is there ends before its trainer starts. A later order replaces an
 * earlier one. */
#ifndef COMMON_RUN_ORDER_H
#define COMMON_RUN_ORDER_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/run/run_state.h"

struct attempt_order {
	enum run_order order;
	char by[65];    /* user name; "" = unknown */
	char text[200]; /* reason; "" = none given */
	bool goes_on; /* "stop" for this attempt alone: the run has another one (cause preempted) */
};

int attempt_order_write(const char *folder, const struct attempt_order *order, struct err *err);

/* ERR_NOT_FOUND when there is none (out->order is ORDER_RUN then). */
int attempt_order_read(const char *folder, struct attempt_order *out, struct err *err);

#endif
