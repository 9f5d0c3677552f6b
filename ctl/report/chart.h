/* SPDX-License-Identifier: MIT */
/* chart.h - a curve of characters: dots of braille, or ASCII; or the frame of a picture. Pure. */
#ifndef CTL_REPORT_CHART_H
#define CTL_REPORT_CHART_H

#include "ctl/report/series.h"

/* of what its curve is made; CHART_FRAME leaves the room for a picture blank */
enum chart { CHART_ASCII, CHART_BRAILLE, CHART_FRAME };

/* the columns of the scale, left of the curve; the row of the steps, below it */
enum { CHART_SCALE_COLUMNS = 10, CHART_SCALE_ROWS = 1 };

/* `columns` × `rows` characters with the scale at the left, and the steps below; owned. NULL where
 * there is nothing to draw. What was undone is dotted thinly. */
char *chart_draw(const struct series *series, enum quantity quantity, int columns, int rows,
		 enum chart chart);

#endif
