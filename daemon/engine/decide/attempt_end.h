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

/* The job lost the node that its lbrun is on, or, as most other nodes say, nobody hears that one;
 * lbrun is silent since silent_ms. Who could use the other nodes is gone, and Slurm's word for it
 * takes minutes. */
struct decision end_lost_host(const struct facts *f, int64_t silent_ms, int64_t now_ms);
struct decision end_unheard_host(const struct facts *f, int64_t silent_ms, int64_t now_ms);

/* Was it cancelled, and nobody is known to have wanted that? */
bool is_nobodys_cancel(const struct facts *f);

#endif
