/* SPDX-License-Identifier: MIT */
/* sync/ - the curve of a run, for the trackers that people use.
 *
 * curve.h - one curve over all attempts, from their spools: steps that a later launch made again
 * count once, as it made them. What may still be made again is not settled: while a run lives those
 * are the steps behind its newest valid checkpoint. */
#ifndef CTL_SYNC_CURVE_H
#define CTL_SYNC_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/run/spool.h"

struct curve_point {
	int64_t step, time_ms;
	char *values; /* {"loss":2.5,…}, all numbers that the trainer told; owned */
};

struct curve {
	struct curve_point *points; /* steps ascend; owned */
	size_t count, cap;
	int64_t saved_step; /* newest valid checkpoint; -1 = none */
};

/* How many of the points, from the first on, are settled. */
size_t curve_settled(const struct curve *c, bool is_over);
/* What tells two beginnings of so many points apart. */
uint64_t curve_digest(const struct curve *c, size_t count);
/* Of all attempts below the run's folder; -1 with err. To be cleared in any case. */
int curve_read(struct curve *c, const char *run_dir, struct err *err);
void curve_clear(struct curve *c);

#endif
