/* SPDX-License-Identifier: MIT */
/* same_weights.h - each rank reads weights by itself: a path may name others on its node, and all
 * would train on as one model. */
#ifndef LBWORKER_SAME_WEIGHTS_H
#define LBWORKER_SAME_WEIGHTS_H

#include "common/base/err.h"
#include "worker/lbworker/ranks/ranks.h"

/* path: a file of weights, or a folder of such. -1 when some rank finds others there than rank 0:
 * err names the first such rank; or when it cannot be read. */
int same_weights(struct ranks *ranks, const char *path, struct err *err);

#endif
