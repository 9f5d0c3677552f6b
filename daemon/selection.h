/* SPDX-License-Identifier: MIT */
/* selection.h - the runs that a request is about, and doing one thing to each of them.
 *
 * args.runs is a list of selectors (common/selector.h), args.run a single name. A name means this
 * run, whatever its state; every other selector means the live runs that it matches. */
#ifndef DAEMON_SELECTION_H
#define DAEMON_SELECTION_H

#include <stdbool.h>

#include "daemon/control.h"
#include "sql/ledger.h"

enum { REASON_MAX_BYTES = 400 };

struct chosen {
	const struct ledger_run *row;	/* borrowed until the next call on the ledger */
	const char *name;		/* a copy that stays */
	bool is_named;			/* by its own name; else what does not apply is passed over */
	const char *reason;		/* args.reason on one clean line; "" */
	bool dry_run;			/* args.dry_run: change nothing, answer what would */
};

/* The answer for one run, NULL with err when it is refused, NULL without err: pass it over. */
typedef json_t *(*selection_do)(struct request *r, const struct chosen *run, struct err *err);

/* Does it to each, commits, and gives the list of answers (for args.run the only one). Named runs
 * come one after the other: what was done before a bad one stands. NULL with err else. */
json_t *selection_each(struct request *r, selection_do one, struct err *err);

#endif
