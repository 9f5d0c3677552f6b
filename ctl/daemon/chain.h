/* SPDX-License-Identifier: MIT */
/* chain.h - lbd as a job of Slurm, for sites where nothing may run on the login node. The script of
 * the job is HOME/lbd.job; each job of the chain submits the next. */
#ifndef CTL_DAEMON_CHAIN_H
#define CTL_DAEMON_CHAIN_H

#include "common/run/lease.h"
#include "ctl/base/command.h"

/* Returns once an lbd in such a job serves; prints where. A chain that is there already is not
 * doubled: its next job would only wait for ever. -1 with err. */
int chain_start(struct ctl *ctl, struct err *err);

/* The job of this lease gets SIGTERM. */
int chain_signal(const struct lease *lease, struct err *err);

/* No next job starts; none is fine. */
int chain_cancel_waiting(const struct ctl *ctl, struct err *err);

/* When its lbd has ended: a job may have submitted the next one meanwhile. Until none is left. */
int chain_end(const struct ctl *ctl, struct err *err);

#endif
