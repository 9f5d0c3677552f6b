/* SPDX-License-Identifier: MIT */
/* cancelled.h - which tasks of arrays were cancelled. Of one that had begun Slurm keeps a record;
 * of one that waited none: it is gone from those that wait. */
#ifndef SLURM_PIPE_CANCELLED_H
#define SLURM_PIPE_CANCELLED_H

#include "slurm/pipe/answer.h"

/* Slurm forgets what has ended after so long (MinJobAge; 0: never). Until it is known, and between
 * polls that are further apart, a task may be gone that has begun and ended. */
void cancelled_min_job_age(int64_t seconds);

/* A poll begins. */
void cancelled_turn(void);
/* All is as in the last one. */
void cancelled_same(void);

/* A record of an array: of these tasks, as Slurm prints them ("7", "3,5-9%2"; "": it does not say).
 * One that ends in "..." was cut off, and says nothing. */
void cancelled_note(const struct wire_row *row, const char *tasks);

/* All were noted: adds "cancelled" (wire.h) to the answer. */
void cancelled_tell(struct answer *a);

#endif
