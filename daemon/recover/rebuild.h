/* SPDX-License-Identifier: MIT */
/* rebuild.h - the rows of a run, made anew from its folder. -1 with err. */
#ifndef DAEMON_RECOVER_REBUILD_H
#define DAEMON_RECOVER_REBUILD_H

#include "common/base/err.h"
#include "daemon/recover/find.h"
#include "daemon/recover/replay.h"

/* All rows of one run, committed. */
int rebuild_run(struct recovery *r, const struct found *found, struct err *err);
/* One event of a run (0: of none). */
int rebuild_event(struct recovery *r, int64_t run_id, const char *kind, const char *actor,
		  const char *text, int64_t time_ms, struct err *err);

#endif
