/* SPDX-License-Identifier: MIT */
/* job.h - from a run to the job that the scheduler gets: the attempt's folder, script and
 * environment. */
#ifndef DAEMON_JOB_H
#define DAEMON_JOB_H

#include "common/err.h"
#include "daemon/config.h"
#include "daemon/run.h"
#include "slurm/scheduler.h"

/* runs/NAME/attempts/N of the run's newest attempt; owned by the caller. */
char *job_folder(const struct run *run);

/* Writes attempts/N with attempt.json and job.sh, and submits it held. -1 when it cannot be
 * prepared; `done` is then not called. */
int job_submit(const struct config *config, const struct run *run, const char *ledger_id,
	       scheduler_done done, void *arg, struct err *err);

#endif
