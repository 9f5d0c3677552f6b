/* SPDX-License-Identifier: MIT */
/* views.h - rows of the ledger as the JSON that docs/PROTOCOL.md promises. */
#ifndef DAEMON_RUNS_VIEWS_H
#define DAEMON_RUNS_VIEWS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "sql/ledger.h"

/* The run object, with its attempts and launches if asked for. Owned by the caller. */
json_t *view_run(struct ledger *ledger, const struct ledger_run *run, bool with_attempts,
		 struct err *err);
json_t *view_metric(const struct ledger_metric *m);
json_t *view_event(const struct ledger_event *e);

#endif
