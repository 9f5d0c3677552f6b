/* SPDX-License-Identifier: MIT */
/* outage.h - nodes that are going away, as an answer tells them (wire.h, "outages"). */
#ifndef SLURM_PIPE_OUTAGE_H
#define SLURM_PIPE_OUTAGE_H

#include "slurm/pipe/answer.h"

/* Before the others: there may be none. */
void outages_begin(struct answer *a);

/* A node that is set to drain, or called failing; `reason`: as Slurm has it, NULL or "" = none. */
void outages_drain(struct answer *a, const char *node, const char *reason);

/* A maintenance reservation, unless it is over; times in seconds since the epoch. `nodes` NULL: of
 * none yet. */
void outages_reservation(struct answer *a, const char *name, const char *nodes, int64_t start,
			 int64_t end);

#endif
