/* SPDX-License-Identifier: MIT */
/* request.h - what lbd asks of the Slurm helper: the line that says it, and the queue where it
 * waits. */
#ifndef SLURM_REQUEST_H
#define SLURM_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "slurm/scheduler.h"

enum op {
	OP_SUBMIT,
	OP_RELEASE,
	OP_SIGNAL,
	OP_CANCEL,
	OP_CHECK,
	OP_POLL,
	OP_INFO,
	OP_WHY,
	OP_ROOM,
	OP_OUTAGES,
	OP_KNOWN,
	OP_COUNT
};

/* "submit", as it stands in the line. */
const char *op_name(enum op op);

/* Somebody waits for it: it goes before polls. */
bool op_is_urgent(enum op op);

/* Something is another than before when it was done, perhaps: an answer that never came is
 * unclear. */
bool op_is_change(enum op op);

/* owned by the queue, then by `current`; freed after its answer */
struct request {
	struct request *next;
	enum op op;
	int64_t id;
	struct job_ref ref;
	char *line;          /* with its newline; NULL: made when it is sent */
	scheduler_done done; /* NULL: our own */
	void *arg;
};

struct queue {
	struct request *first, **last;
};

void queue_init(struct queue *q);
void queue_put(struct queue *q, struct request *r);
struct request *queue_take(struct queue *q); /* NULL: empty */
void queue_drop(struct queue *q);            /* frees all of it, unanswered */
void request_free(struct request *r);        /* NULL is fine */

/* Lines with their newline, owned by the caller. */

/* A request that says no more than its name. */
char *request_bare_line(const struct request *r);
/* For the jobs of one ledger (""; those of all); `have` is the time stamp of the last poll, 0 =
 * none. */
char *request_poll_line(const struct request *r, const char *ledger_id, int64_t have);

/* The jobs of struct scheduler's `known`, which it takes. */
char *request_known_line(const struct request *r, const char *ledger_id, json_t *jobs);

/* An order to the job r->ref. */
char *request_order_line(const struct request *r, int signo);

/* A request that tells the whole job. */
char *request_job_line(const struct request *r, const struct job_request *job);

/* The same, and the job r->ref that waits, with the nodes that we keep it away from. */
char *request_why_line(const struct request *r, const struct job_request *job, const char *avoided);

#endif
