/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit_catch.h - libslurm's words about a limit: it says which on stderr only. */
#ifndef SLURM_HELPER_LIMIT_CATCH_H
#define SLURM_HELPER_LIMIT_CATCH_H

#include "slurm/pipe/limit_word.h"

/* stderr is caught between the two: at most one catch at a time, one thread. */
struct limit_catch {
	int saved_fd, caught_fd; /* -1: could not be */
};

void limit_catch_begin(struct limit_catch *c);

/* What was caught goes on to stderr. *limit as by limit_word. */
void limit_catch_end(struct limit_catch *c, char limit[LIMIT_WORD_BYTES]);

#endif
