/* SPDX-License-Identifier: MIT */
/* chart.h - a curve of characters: dots of braille, or ASCII. Pure. */
#ifndef CTL_REPORT_CHART_H
#define CTL_REPORT_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/report/series.h"

enum quantity { QUANTITY_LOSS, QUANTITY_SPEED };
double quantity_of(const struct point *point, enum quantity quantity);

/* `columns` × `rows` characters with the scale at the left, and the steps below; owned. NULL where
 * there is nothing to draw. What was undone is dotted thinly. */
char *chart_draw(const struct series *series, enum quantity quantity, int columns, int rows,
		 bool utf8);

#endif
