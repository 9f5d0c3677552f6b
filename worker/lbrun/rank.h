/* SPDX-License-Identifier: MIT */
/* rank.h - the shepherd of one rank, under srun, on the rank's own node. */
#ifndef LBRUN_RANK_H
#define LBRUN_RANK_H

/* Runs argv with its output prefixed by [node:rank], hands signals on, and ends only when every
 * descendant is dead. Returns the exit status of the program. */
/* lbrun's word to it, by scancel, which signals every process of the step: so it must be one that all
 * others ignore. What the rank started gets SIGTERM (launchers.h), and the time it takes. */
#define RANK_TERM SIGURG
#define RANK_TERM_NAME "URG"

int rank_main(char *const *argv);

#endif
