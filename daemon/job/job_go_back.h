/* SPDX-License-Identifier: MIT */
/* job_go_back.h - a run that was sent back to an earlier checkpoint, or to its beginning. */
#ifndef DAEMON_JOB_JOB_GO_BACK_H
#define DAEMON_JOB_JOB_GO_BACK_H

#include "common/base/err.h"
#include "daemon/engine/run.h"

/* Moves its later checkpoints, and those of its tasks, aside, or the attempt would go on from them.
 * The trainer of this attempt does not run yet, and no other one does. */
int job_go_back(const struct run *run, struct err *err);

#endif
