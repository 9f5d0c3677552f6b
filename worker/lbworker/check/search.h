/* SPDX-License-Identifier: MIT */
/* search.h - whose fault is it that sums of all ranks come out wrong, or slow? */
#ifndef LBWORKER_CHECK_SEARCH_H
#define LBWORKER_CHECK_SEARCH_H

#include <stdbool.h>

#include "worker/lbworker/ranks/ranks.h"

/* Groups of ranks add up ones at the same time (common/check/node_search.h) until it is known. A
 * group fails by a wrong sum, or by less than slow_share of the best group's bandwidth in its
 * round; 0: only by a wrong one. *is_bad: it is ours. Returns how many ranks are bad, in *rounds
 * rounds; 0: nobody can be named; -1 with err. */
int check_search(struct ranks *ranks, double slow_share, bool *is_bad, int *rounds,
		 struct err *err);

#endif
