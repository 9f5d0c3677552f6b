/* SPDX-License-Identifier: MIT */
/* page.h - what was asked of runs, as one HTML page that needs nothing else. Pure. */
#ifndef CTL_REPORT_PAGE_H
#define CTL_REPORT_PAGE_H

#include "ctl/report/series.h"

/* All of it is borrowed; what is NULL, or empty, is left out. */
struct report_run {
	json_t *run;         /* status */
	json_t *goodput;     /* verb goodput */
	json_t *checkpoints; /* as lbctl checkpoints --json */
	json_t *settings;    /* in which it differs from the others of the page */
	const char *code;    /* one line */
	struct series series;
};

/* What stands on top: "run brisk-otter-39". Owned. */
char *page_make(const char *title, int64_t now_ms, const struct report_run *runs, size_t count);

#endif
