/* SPDX-License-Identifier: MIT */
/* words.h - what the words amount to by which Slurm's commands say that they failed. */
#ifndef SLURM_PIPE_WORDS_H
#define SLURM_PIPE_WORDS_H

#include "slurm/pipe/answer.h"
#include "slurm/pipe/command.h"

/* Of a command that was to change something; `words` as one line. Always -1. */
int words_failed(struct answer *a, const char *words, const char *what);

/* Of any command that failed: a mere look has done nothing, one that was killed may have done all.
 * Always -1. */
int said_failed(struct answer *a, const struct said *said, bool is_change, const char *what);

/* Did it only say that the site keeps that to itself (PrivateData)? Then it is not there. */
bool said_is_denied(const struct said *said);

/* Does sbatch --test-only say that the job must wait, not that it would be refused? */
bool words_are_passing(const char *words);

#endif
