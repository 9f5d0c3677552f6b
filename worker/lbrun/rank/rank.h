/* SPDX-License-Identifier: MIT */
/* rank/ - stands in front of the ranks of one node.
 *
 * rank.h - the shepherd of one rank, or of what starts all ranks of a node, on that node. */
#ifndef LBRUN_RANK_RANK_H
#define LBRUN_RANK_RANK_H

/* lbrun's word to it, by scancel, which signals every process of the step: so it must be one that
 * all others ignore. What the rank started gets SIGTERM (rank_term.h), and the time it takes. */
#define RANK_TERM SIGURG
#define RANK_TERM_NAME "URG"

/* Runs argv with its output prefixed by [node:rank], hands signals on, and ends only when every
 * descendant is dead. Returns the exit status of the program. The rank is that of srun, or of the
 * torchrun that started us. */
int rank_main(char *const *argv);

/* The same for a torchrun that starts `ranks` of them: it is told the node's number, and lines that
 * have a prefix keep it. */
int rank_node_main(int ranks, char *const *argv);

#endif
