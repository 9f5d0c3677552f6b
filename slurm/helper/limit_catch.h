/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit_catch.h - libslurm's words about a refusal: which limit it was, or why the site's plug-in
 * refused, it says on stderr only. */
#ifndef SLURM_HELPER_LIMIT_CATCH_H
#define SLURM_HELPER_LIMIT_CATCH_H

#include "slurm/pipe/command.h"
#include "slurm/pipe/limit_word.h"

/* stderr is caught between the two: at most one catch at a time, one thread. */
struct limit_catch {
	int saved_fd, caught_fd; /* -1: could not be */
};

void limit_catch_begin(struct limit_catch *c);

/* What was caught goes on to stderr. *limit as by limit_word; *said: the errors among it in one
 * line, "" for none: a job_submit plug-in tells its reasons so. */
void limit_catch_end(struct limit_catch *c, char limit[LIMIT_WORD_BYTES],
		     char said[COMMAND_SAID_BYTES]);

#endif
