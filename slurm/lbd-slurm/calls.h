/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls.h - what the operations of lbd-slurm share: an answer, and libslurm with its errors judged.
 *
 * One operation at a time, one thread. Every call may block for as long as libslurm likes: lbd holds
 * the deadline and the SIGKILL. */
#ifndef LBD_SLURM_CALLS_H
#define LBD_SLURM_CALLS_H

#include <jansson.h>
#include <stdbool.h>

#include "slurm/lbd-slurm/libslurm.h"
#include "slurm/wire.h"

struct answer {			/* main.c makes, prints and releases it */
	json_int_t id;
	enum scheduler_result result;
	char text[504];
	json_t *body;		/* an object with the members of the operation's own; owned */
};

/* Always -1, so that a failure is one statement. */
int answer_set(struct answer *a, enum scheduler_result result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Tells lbd that Slurm is about to be asked to change something. */
void answer_acting(const struct answer *a);

/* Makes libslurm usable and sees that a controller answers: a ping fails at once where the other
 * calls would retry for many seconds. 0, or -1 with SCHEDULER_DOWN. */
int slurm_ready(struct answer *a);

/* Judges a failed call. `has_acted`: it was one that changes something. Always -1. */
int slurm_failed(struct answer *a, int rc, bool has_acted, const char *what);

/* The same for an error that was told in Slurm's words, by a command that was to change something. */
int slurm_failed_in_words(struct answer *a, const char *words, const char *what);

/* The job that the request names by token, job id and submit time. 0: it is there, and ours; -1:
 * *a says why not. */
int slurm_find(struct answer *a, const json_t *request, uint32_t *job_id);

/* The record of one job id; NULL with *a set. The caller releases *list, not the record. */
const slurm_job_info_t *slurm_record(struct answer *a, uint32_t job_id, job_info_msg_t **list);

/* Submits the request by the sbatch command, held. 0 with the job's number, or -1. */
int sbatch_submit(const json_t *request, struct answer *a, uint32_t *job_id);

/* The operations: each sets *a. */
void op_submit(const json_t *request, struct answer *a);
void op_release(const json_t *request, struct answer *a);
void op_signal(const json_t *request, struct answer *a);
void op_cancel(const json_t *request, struct answer *a);
void op_poll(const json_t *request, struct answer *a);
void op_info(const json_t *request, struct answer *a);

#endif
