/* SPDX-License-Identifier: MIT */
/* svg.h - SVG into a buffer: curves, bars. Pure. */
#ifndef CTL_REPORT_SVG_H
#define CTL_REPORT_SVG_H

#include "common/base/mem.h"
#include "ctl/report/series.h"

/* A moment at which something happened to a run, above its curve. */
struct happening {
	int64_t step;
	const char *what; /* "oom" */
};
/* A curve over steps, or over time: what counted is drawn through, what was undone dashed. Nothing
 * is written where no point has a value. `title` is for those who do not see it, too. */
void svg_curve(struct buf *out, const char *title, const struct series *series,
	       enum quantity quantity, const struct happening *happenings, size_t count);
/* Horizontal bars, one below the other, each beginning where the last one ended; in hours. */
struct share {
	const char *name;
	double hours;
};
void svg_waterfall(struct buf *out, const char *title, const struct share *shares, size_t count);

#endif
