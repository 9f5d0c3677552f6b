/* SPDX-License-Identifier: MIT */
/* selection.h - the runs that a request is about, and doing one thing to each of them.
 *
 * args.runs is a list of selectors (common/team/selector.h), args.run a single name. A name means
 * this run, whatever its state; every other selector means the live runs that it matches. */
#ifndef DAEMON_RUNS_SELECTION_H
#define DAEMON_RUNS_SELECTION_H

#include <stdbool.h>

#include "daemon/control/control.h"
#include "sql/ledger.h"

enum { REASON_MAX_BYTES = 400 };

struct chosen {
	const struct ledger_run *row; /* borrowed until the next call on the ledger */
	const char *name;             /* a copy that stays */
	bool is_named;                /* by its own name; else what does not apply is passed over */
	const char *reason;           /* args.reason on one clean line; "" */
	bool dry_run;                 /* args.dry_run: change nothing, answer what would */
};

/* What a verb does to each run: first it is written, and when all of it is committed, done. */
struct selection_verb {
	/* The answer for this run, NULL with err when it is refused, NULL without err: pass it
	 * over. *acts (false before): something is to be done. */
	json_t *(*write)(struct request *r, const struct chosen *run, bool *acts, struct err *err);
	/* `answer` is what `write` gave. */
	int (*act)(struct request *r, const json_t *answer, const char *reason, struct err *err);
};

/* Does it to each and gives the list of answers (for args.run the only one). Named runs come one
 * after the other: what was done before a bad one stands. NULL with err else; when the ledger could
 * not be written nothing was done to any. */
json_t *selection_each(struct request *r, const struct selection_verb *verb, struct err *err);

#endif
