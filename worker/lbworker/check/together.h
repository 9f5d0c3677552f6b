/* SPDX-License-Identifier: MIT */
/* together.h - what only several ranks can find out: links, clocks, sums, and who is slow. */
#ifndef LBWORKER_CHECK_TOGETHER_H
#define LBWORKER_CHECK_TOGETHER_H

#include "worker/lbworker/check/node.h"
#include "worker/lbworker/ranks/ranks.h"

/* Who does so much less than the median of all is called slow; clocks may differ by so much. */
struct check_limits {
	double slow_share; /* 0.5 */
	double clock_s;
};

/* Pairs of ranks, each with another partner in each of log2(size) rounds: a link that is slow is so with
 * every partner, a partner of it is not. Sets mine->speed[CHECK_LINK], the best of them, and clock_s. */
int check_links(struct ranks *ranks, struct check_result *mine, struct err *err);
/* An all-reduce of ones must be the number of ranks. Tells bandwidths by size of message on stdout of
 * rank 0. */
int check_sums(struct ranks *ranks, struct check_result *mine, struct err *err);
/* all[size]: what everybody says, on every rank; who is slow, or has another clock, has a fault then. */
int check_gather(struct ranks *ranks, const struct check_result *mine,
		 const struct check_limits *limits, struct check_result *all, struct err *err);

#endif
