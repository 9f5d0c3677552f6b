/* SPDX-License-Identifier: MIT */
/* rank.h - the shepherd of one rank, under srun, on the rank's own node. */
#ifndef LBRUN_RANK_H
#define LBRUN_RANK_H

/* Runs argv with its output prefixed by [node:rank], hands signals on, and ends only when every
 * descendant is dead. Returns the exit status of the program. */
int rank_main(char *const *argv);

#endif
