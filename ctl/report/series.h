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
	double loss, tokens_per_s;
	double use;     /* of GPUs, percent; NaN in the series of a trainer */
	int stretch;    /* from 0: the steps between two returns to a checkpoint */
	bool is_undone; /* a later stretch made this step again */
};

struct series {
	struct point *points; /* in order of arrival; owned */
	size_t count;
	int stretches;
	int64_t attempt_id, launch; /* that told the newest */
};

void series_push(struct series *series, const struct point *point);
/* Of json {"id","launch","step","loss","time","tokens_per_s"}; series_end marks what was undone. What
 * a launch tells of the step that it has told last belongs to that. */
void series_add(struct series *series, const json_t *step);
void series_end(struct series *series);
void series_clear(struct series *series);

enum quantity { QUANTITY_LOSS, QUANTITY_SPEED, QUANTITY_USE };
double quantity_of(const struct point *point, enum quantity quantity);

/* The same line in at most about 4 × `buckets` points: of each bucket the first and the last, and
 * those with the least and the largest value, so that no spike is lost; in order. Stretches keep
 * their ends. */
void series_thin(const struct series *series, enum quantity quantity, size_t buckets,
		 struct series *out);

/* Between which values the points lie, and between which steps all of them do; around a single
 * value there is some room, and percents have all of theirs. False: no point has a value. */
struct range {
	double low, high;
	int64_t first, last;
	/* a loss that has gone so far up that a linear scale would show nothing else */
	bool is_log;
};
bool series_range(const struct series *series, enum quantity quantity, struct range *out);
/* Where on the scale a value stands: 0 at the bottom, 1 on top; and the value that stands there. */
double range_share(const struct range *range, double value);
double range_value(const struct range *range, double share);

/* The step from which on no finite loss has been told, to the end, though it was before; -1:
 * none. Who tells it with every tenth step only is known by that. */
int64_t series_silent_since(const struct series *series);

/* All steps that lbd keeps of the run. -1 with err. */
int series_ask(struct ctl *ctl, const char *run, struct series *out, struct err *err);

#endif
