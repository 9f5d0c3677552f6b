/* SPDX-License-Identifier: MIT */
/* limit_word.h - which limit of accounting a job is over.
 *
 * The error for all of them is one, ESLURM_ACCOUNTING_POLICY; the name of the limit
 * ("AssocMaxSubmitJobLimit") is only said: by libslurm on stderr, by sbatch in front of its
 * error. */
#ifndef SLURM_PIPE_LIMIT_WORD_H
#define SLURM_PIPE_LIMIT_WORD_H

#include <stdbool.h>

#include "slurm/pipe/answer.h"

enum { LIMIT_WORD_BYTES = 280 };

/* What ESLURM_ACCOUNTING_POLICY reads as, in every release. */
#define LIMIT_WORDS "Job violates accounting/QOS policy"

/* "AssocMaxSubmitJobLimit: its account allows no more jobs in the queue" from what was said; ""
 * when no limit is named there. */
void limit_word(const char *said, char limit[LIMIT_WORD_BYTES]);

/* The answers: such a job would never be taken, in words that name the key (account and qos as the
 * job asks for them, or NULL); or it may be taken once others have ended. Always -1, as
 * answer_set. */
int limit_refuse(struct answer *a, const char *limit, const char *account, const char *qos);
int limit_wait(struct answer *a, const char *limit);

/* What Slurm says of an array that the site does not allow. */
#define LIMIT_ARRAY_WORDS "Invalid job array specification"

/* The answer, with what it allows: MaxArraySize, 0 where it is not known, and SchedulerParameters,
 * or NULL. */
int limit_refuse_array(struct answer *a, const char *array, int64_t max_size,
		       const char *parameters);

/* The controller takes no more jobs for now: "Resource temporarily unavailable" is all that it
 * says. `max`: how many it may hold; 0: not known. */
int limit_no_room(struct answer *a, int64_t max);

#endif
