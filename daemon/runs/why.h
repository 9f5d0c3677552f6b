/* SPDX-License-Identifier: MIT */
/* why.h - why a run does not run, in words, and what would start it sooner. */
#ifndef DAEMON_RUNS_WHY_H
#define DAEMON_RUNS_WHY_H

#include "daemon/control/control.h"

/* Answers the request, at once or when the scheduler has. */
void why_run(struct request *request);

/* Adds "waits_text": what a scheduler's word in "waits_for" means, where it is one. */
void why_add_text(json_t *object, const char *waits_for);

#endif
