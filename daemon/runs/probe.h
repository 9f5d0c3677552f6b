/* SPDX-License-Identifier: MIT */
/* probe.h - what the scheduler is asked while a person waits. Would it take such a job? Asked
 * before a run is made, so that what would be refused leaves nothing behind. And which number has
 * the job? A run is committed by then: it goes on whoever waits. */
#ifndef DAEMON_RUNS_PROBE_H
#define DAEMON_RUNS_PROBE_H

#include "daemon/base/lbd.h"

enum { PROBE_PATIENCE_MS = 5000 }; /* so long a person waits for the scheduler, and no longer */

/* `done` is called once, perhaps at once: with NULL when the job may be submitted, else with why
 * not. A scheduler that does not answer soon, or is known to be away, or knows no such question, is
 * not waited for: it is asked when the job is due. `run` is borrowed for the call only. */
void probe_ask(struct lbd *lbd, const struct run *run,
	       void (*done)(void *arg, const struct err *why), void *arg);

/* `told` is called once, perhaps at once: with the number of the job that is being submitted for
 * this run, or with 0 when there is none until `until_ms` (monotonic), or nobody would say. */
void probe_job(struct lbd *lbd, const char *run, int64_t until_ms,
	       void (*told)(void *arg, uint32_t job_id), void *arg);

/* The scheduler's word for a submission (on_job of scheduler.h); `arg` is the lbd. */
void probe_on_job(void *arg, const struct job_ref *job);

/* lbd ends: who still waits is told so. Right before the schedulers are closed, which then answer
 * nobody. */
void probes_close(struct lbd *lbd);

#endif
