/* SPDX-License-Identifier: MIT */
/* probe.h - would the scheduler take such a job? Asked before a run is made, so that what would be
 * refused leaves nothing behind. */
#ifndef DAEMON_RUNS_PROBE_H
#define DAEMON_RUNS_PROBE_H

#include "daemon/base/lbd.h"

/* `done` is called once, perhaps at once: with NULL when the job may be submitted, else with why
 * not. A scheduler that does not answer soon, or is known to be away, or knows no such question, is
 * not waited for: it is asked when the job is due. `run` is borrowed for the call only. */
void probe_ask(struct lbd *lbd, const struct run *run,
	       void (*done)(void *arg, const struct err *why), void *arg);

/* lbd ends: who still waits is told so. Right before the schedulers are closed, which then answer
 * nobody. */
void probes_close(struct lbd *lbd);

#endif
