/* SPDX-License-Identifier: MIT */
/* srun_words.h - what srun itself says of the step that it runs. */
#ifndef LBRUN_COMPLAINTS_SRUN_WORDS_H
#define LBRUN_COMPLAINTS_SRUN_WORDS_H

#include <stdbool.h>

#include "worker/lbrun/complaints/heard.h"

/* Does srun, or slurmstepd, any of them, say that it ends all that is left of a step? */
bool srun_words_end_all(const char *text);
/* Is it the word of our own srun, of no rank, that it ends all that is left? */
bool srun_words_end_step(const struct heard *heard);
/* Where the line is our own srun's word for a node that it cannot reach: what begins with the
 * node's name and a colon, else NULL. */
const char *srun_words_unreached(const struct heard *heard);

#endif
