/* SPDX-License-Identifier: MIT */
/* doomed.h - jobs that were to wait for how others end (--dependency), when those have failed: they
 * never start, and neither does the run. Part of reconcile, and as pure. */
#ifndef DAEMON_ENGINE_DECIDE_DOOMED_H
#define DAEMON_ENGINE_DECIDE_DOOMED_H

#include <stdbool.h>

#include "daemon/engine/decide/reconcile.h"

/* What the job depends on has failed, says Slurm, which may have forgotten that when the next job
 * asks for the same, and would let it run: the verdict is the run's. Of an array it says so once
 * nothing else is left (--dependency=aftercorr). */
bool is_never_to_start(const struct facts *f);
struct decision end_doomed(void);

/* Gone without having begun, and it was to wait for how others end: Slurm may have cancelled it
 * because they failed, and have forgotten that since. Not so when it was seen to wait for something
 * else, when the controller has lost what this lbd had only just submitted, or when the run has
 * begun before: then the others had ended well. */
bool may_be_doomed(const struct facts *f);
/* Accounting may know better: that a person cancelled it, or that it ran. END, RECALL, or WAIT. */
struct decision end_maybe_doomed(const struct facts *f);

/* Whether that is the text of an attempt that ended so: what a process that dies before the run has
 * moved leaves of the verdict. */
bool ended_for_good(const char *end_text);

#endif
