/* SPDX-License-Identifier: MIT */
/* handlers.h - what lbd does for each verb: one row, one function. */
#ifndef DAEMON_HANDLERS_H
#define DAEMON_HANDLERS_H

#include "sql/ledger.h"

struct request;

/* Answers the request, now or later. The peer's role has been checked. */
void handle(struct request *request);

/* The run that args.run names. */
int request_run(struct request *request, struct ledger_run *out, struct err *err);

#endif
