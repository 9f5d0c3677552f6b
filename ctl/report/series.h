/* SPDX-License-Identifier: MIT */
/* report/ - what a run looks like: lbctl plot in the terminal, lbctl report as a page.
 *
 * series.h - the steps of a run over all its attempts: which of them counted in the end, and few
 * enough points to draw. Pure, but for series_ask. */
#ifndef CTL_REPORT_SERIES_H
#define CTL_REPORT_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/command.h"

struct point {
	int64_t step;
	double time_s; /* since the epoch; NaN = not known */
	double loss, tokens_per_s;
	int stretch;    /* from 0: the steps between two returns to a checkpoint */
	bool is_undone; /* a later stretch made this step again */
};

struct series {
	struct point *points; /* in order of arrival; owned */
	size_t count;
	int stretches;
};

/* Of json {"step","loss","time","tokens_per_s"}; series_end marks what was undone. */
void series_add(struct series *series, const json_t *step);
void series_end(struct series *series);
void series_clear(struct series *series);

/* The same line in at most about 4 × `buckets` points: of each bucket the first and the last, and
 * those with the least and the largest loss, so that no spike is lost; in order. Stretches keep
 * their ends. */
void series_thin(const struct series *series, size_t buckets, struct series *out);

/* All steps that lbd keeps of the run. -1 with err. */
int series_ask(struct ctl *ctl, const char *run, struct series *out, struct err *err);

#endif
