/* SPDX-License-Identifier: MIT */
/* together.h - what only several ranks can find out: links, clocks and sums. */
#ifndef LBWORKER_CHECK_TOGETHER_H
#define LBWORKER_CHECK_TOGETHER_H

#include "common/check/node_report.h"
#include "worker/lbworker/ranks/ranks.h"

/* Pairs of ranks, each with another partner in each of log2(size) rounds: a link that is slow is so
 * with every partner, a partner of it is not. Sets mine->speed[CHECK_LINK], the best of them, and
 * clock_s. */
int check_links(struct ranks *ranks, struct check_result *mine, struct err *err);

/* An all-reduce of ones: it must be the number of ranks, else fault ("": none so far) says what
 * came. *best_s: of three. */
int check_sum(struct ranks *ranks, size_t bytes, double *best_s, char *fault, size_t fault_bytes,
	      struct err *err);

enum { SUM_ROWS = 7, SUM_LEAST_BYTES = 4 << 10, SUM_GROWTH = 4 };
/* As nccl-tests has them: bytes / seconds, and times 2 (n-1)/n, what each rank sends. */
struct sum_row {
	size_t bytes;
	double seconds, algorithm_gbs, bus_gbs;
};
/* The same by size of message, 4 KiB to 16 MiB. */
int check_sums(struct ranks *ranks, struct sum_row rows[SUM_ROWS], char *fault, size_t fault_bytes,
	       struct err *err);

#endif
