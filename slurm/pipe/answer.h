/* SPDX-License-Identifier: MIT */
/* answer.h - what a helper answers: one for each request, and a word before each change. */
#ifndef SLURM_PIPE_ANSWER_H
#define SLURM_PIPE_ANSWER_H

#include <jansson.h>

#include "slurm/wire.h"

struct answer {
	json_int_t id;
	enum scheduler_result result;
	char text[504];
	json_t *body;      /* an object with the members of the operation's own; owned */
	struct buf rows;   /* of a poll: not yet sent; owned */
	int64_t row_count; /* sent or not */
};

/* Always -1, so that a failure is one statement. */
int answer_set(struct answer *a, enum scheduler_result result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Answers go to a descriptor of their own: whatever Slurm prints on stdout joins its noise on
 * stderr, which is lbd's log. Before the first answer; 0, or -1 with errno. */
int answers_open(void);

/* Tells lbd that Slurm is about to be asked to change something. */
void answer_acting(const struct answer *a);

/* Tells lbd the number that Slurm gave to the job: whoever waits for it need not wait until the job
 * is read back. */
void answer_job(const struct answer *a, uint32_t job_id);

/* Tells lbd of a job (wire.h, "rows"), at the latest with the answer. */
void answer_row(struct answer *a, const struct wire_row *row);

/* Writes it, and releases what it holds. */
void answer_write(struct answer *a);

#endif
