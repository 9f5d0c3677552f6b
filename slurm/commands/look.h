/* SPDX-License-Identifier: MIT */
/* commands/ - lbd-slurm-commands, the helper for sites where lbd-slurm does not fit: what that asks
 * of libslurm this one asks of squeue, scontrol, scancel and sbatch, in the same words to lbd
 * (slurm/wire.h).
 *
 * look.h - what squeue tells of jobs, and proof that it told all of it. */
#ifndef SLURM_COMMANDS_LOOK_H
#define SLURM_COMMANDS_LOOK_H

#include "slurm/pipe/answer.h"

enum { LOOK_TASKS_BYTES = 28 };

struct seen {                 /* a record of squeue: a job, or one or more tasks of an array */
	struct wire_row row;  /* token "": not ours */
	char *nodes;          /* owned */
	uint32_t uid, job_id; /* its own; row.job_id is the array's */
	bool is_listed;       /* `nodes` was asked for by itself */
	bool is_task;
	char tasks[LOOK_TASKS_BYTES]; /* which; "...": more than squeue printed */
	bool is_ending; /* over, but its nodes are not free yet: it counts as running */
};

struct look {
	struct seen *jobs;
	size_t count;
	char *down;   /* nodes; owned, NULL: nobody asked */
	int64_t time; /* of the controller's last change, seconds since the epoch; 0: not told */
};

/* All jobs of this user that the controller still knows, or those of one id (a job, or an array's).
 * -1 with *a: SCHEDULER_GONE only where Slurm said that there is no such job; whatever else went
 * wrong is SCHEDULER_DOWN, an answer that was cut or is none, too. look_clear is due in any
 * case. */
int look_all(struct answer *a, struct look *look);
int look_at(struct answer *a, uint32_t job_id, struct look *look);
void look_clear(struct look *look);

/* What squeue prints of the job in this format, as long as it may be: a line; owned, NULL: it
 * prints none. */
char *look_line(uint32_t job_id, const char *format);

/* Does it wait, and is not to be begun? */
bool seen_is_held(const struct seen *job);

/* The record that tells most of the job or array: what any of its tasks still does counts first,
 * then what failed. NULL: there is none. */
const struct seen *look_foremost(const struct look *look, const struct seen *of);

/* That of each job and array, by job id; the caller frees. A record does not tell that it is an
 * array's: once those that wait are cancelled, what is left of them looks like a job. */
const struct seen **look_foremost_of_each(const struct look *look, size_t *count);

/* The job that the request names by token, job id and submit time: 0 with its foremost record (in
 * *look), or -1 with *a. */
int look_find(struct answer *a, const json_t *request, struct look *look, const struct seen **job);

#endif
