/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit_word.h - which limit of accounting a job is over.
 *
 * The error for all of them is one, ESLURM_ACCOUNTING_POLICY; the name of the limit
 * ("AssocMaxSubmitJobLimit") is only said: by libslurm on stderr, by sbatch in front of its
 * error. */
#ifndef SLURM_HELPER_LIMIT_WORD_H
#define SLURM_HELPER_LIMIT_WORD_H

#include <stdbool.h>

enum { LIMIT_WORD_BYTES = 280 };

/* stderr is caught between the two: at most one catch at a time, one thread. */
struct limit_catch {
	int saved_fd, caught_fd; /* -1: could not be */
};

void limit_catch_begin(struct limit_catch *c);

/* What was caught goes on to stderr. *limit as by limit_word. */
void limit_catch_end(struct limit_catch *c, char limit[LIMIT_WORD_BYTES]);

/* "AssocMaxSubmitJobLimit: its account allows no more jobs in the queue" from what was said; ""
 * when no limit is named there. */
void limit_word(const char *said, char limit[LIMIT_WORD_BYTES]);

/* Is it one of a QOS? */
bool limit_word_is_qos(const char *limit);

#endif
