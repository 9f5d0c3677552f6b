/* SPDX-License-Identifier: MIT */
/* job/ - what a scheduler gets of a run: folder, script, environment, launch words.
 *
 * job.h - from a run to the job that the scheduler gets: the attempt's folder, script and
 * environment. */
#ifndef DAEMON_JOB_JOB_H
#define DAEMON_JOB_JOB_H

#include "common/base/err.h"
#include "daemon/base/config.h"
#include "daemon/engine/run.h"
#include "slurm/scheduler.h"

/* runs/NAME/attempts/N of the run's newest attempt; owned by the caller. */
char *job_folder(const struct run *run);

/* job.sh, as job_submit hands it over; `text` is that of a batch script, or NULL. Owned by the
 * caller. */
char *job_script(const struct config *config, const struct scheduler *scheduler, const char *folder,
		 const char *text);

/* Writes attempts/N with attempt.json and job.sh, unless they are there with its token: whatever
 * its job is to find when it begins. node_mtbf_s: between troubles of one node, for those who
 * choose how often to save. */
int job_write(const struct config *config, const struct run *run, double node_mtbf_s,
	      struct err *err);

/* Submits it held; where the scheduler reads them its files are written before, else job_write is
 * due before the job is released. -1 when it cannot be prepared; `done` is then not called. */
int job_submit(const struct config *config, const struct run *run, double node_mtbf_s,
	       const char *ledger_id, scheduler_done done, void *arg, struct err *err);

/* Asks the run's scheduler, which must have the call, whether it would take the job, and why the
 * job of the newest attempt does not run. -1: the question cannot be put; `done` is then not
 * called. */
int job_probe(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	      struct err *err);
/* ops->room of it. */
int job_room(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	     struct err *err);
int job_why(const struct config *config, const struct run *run, scheduler_done done, void *arg,
	    struct err *err);

/* Writes the attempt.json of a job that is still held again: the run has gone on since. */
int job_retell(const struct config *config, const struct run *run, double node_mtbf_s,
	       struct err *err);

#endif
