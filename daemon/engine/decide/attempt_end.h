/* SPDX-License-Identifier: MIT */
/* attempt_end.h - decisions that end an attempt; part of reconcile, and as pure. */
#ifndef DAEMON_ENGINE_DECIDE_ATTEMPT_END_H
#define DAEMON_ENGINE_DECIDE_ATTEMPT_END_H

#include <stdbool.h>

#include "daemon/engine/decide/reconcile.h"

struct decision attempt_end(enum cause cause, const char *text);
/* lbrun's own record comes first. Where it says "lost" it was ended by a signal that lbd did not
 * send: the scheduler knows why. */
struct decision end_by_record(const struct facts *f);
/* By what the scheduler says of the job (f->seen), or accounting (f->a->recalled). */
struct decision end_by_scheduler(const struct facts *f);
struct decision end_by_accounting(const struct facts *f);

/* Was it cancelled, and nobody is known to have wanted that? */
bool is_nobodys_cancel(const struct facts *f);

#endif
