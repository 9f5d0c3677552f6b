/* SPDX-License-Identifier: MIT */
/* replay.h - the way back of a ledger, and the world of the day that is read. */
#ifndef DAEMON_RECOVER_REPLAY_H
#define DAEMON_RECOVER_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/lbd.h"
#include "daemon/engine/engine.h"
#include "sql/ledger.h"

struct recovery {
	struct lbd *lbd;
	struct ledger *ledger;
	struct engine *engine;
	struct world real;
	int64_t clock_ms; /* of the line that is read */
	char *spool;      /* where a compressed one is unpacked */
	bool is_slurm;    /* runs of which nothing tells go there */
	int64_t runs, live, attempts;
};

/* The engine's world: what files say, at the time they say. */
void replay_world(struct recovery *r, struct world *out);

#endif
