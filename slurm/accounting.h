/* SPDX-License-Identifier: MIT */
/* accounting.h - what Slurm's accounting remembers of jobs that the controller has forgotten
 * (MinJobAge), asked by way of sacct.
 *
 * sacct may hang, be absent, or have no database to ask: whatever it cannot say is "gone" or
 * "down", and nobody ever waits for more than the deadline. One sacct runs at a time, for all that
 * ask. */
#ifndef SLURM_ACCOUNTING_H
#define SLURM_ACCOUNTING_H

#include <uv.h>

#include "slurm/scheduler.h"

struct accounting;

/* `program` is looked up in PATH and borrowed for good. */
struct accounting *accounting_create(uv_loop_t *loop, const char *program, int64_t deadline_ms);

/* As the calls of scheduler.h: SCHEDULER_OK with one job that is over; SCHEDULER_GONE: no such job,
 * or not over; SCHEDULER_DOWN: sacct failed or was late. */
void accounting_ask(struct accounting *a, const struct job_ref *job, scheduler_done done,
		    void *arg);

/* Questions that wait are dropped without an answer; `closed` comes from the loop, once. */
void accounting_close(struct accounting *a, void (*closed)(void *arg), void *arg);

#endif
