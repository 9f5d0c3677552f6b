/* SPDX-License-Identifier: MIT */
/* sums_plot.h - bandwidth of all-reduce by size of message, drawn. */
#ifndef LBWORKER_CHECK_SUMS_PLOT_H
#define LBWORKER_CHECK_SUMS_PLOT_H

#include "worker/lbworker/check/together.h"

/* An SVG file: algorithm and bus bandwidth, both axes logarithmic. */
int sums_plot(const char *path, const struct sum_row rows[SUM_ROWS], int ranks, struct err *err);

#endif
