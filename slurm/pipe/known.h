/* SPDX-License-Identifier: MIT */
/* known.h - the jobs of the last poll and those submitted since, by number: whoever may change one
 * may replace its comment, and with it lbd's token. A helper that begins is told by lbd. */
#ifndef SLURM_PIPE_KNOWN_H
#define SLURM_PIPE_KNOWN_H

#include "slurm/wire.h"

/* A poll begins: what is noted from now on is what the next one knows. */
void known_turn(void);
void known_note(const struct wire_row *row);

/* Of a job whose comment is none of ours: was it ours by then? Then its token and ledger
 * id are put into the row. */
bool known_find(struct wire_row *row);
/* The same between polls: of one that is known by now. */
bool known_find_now(struct wire_row *row);

#endif
