/* SPDX-License-Identifier: MIT */
/* page.h - what was asked of runs, as one HTML page that needs nothing else. Pure. */
#ifndef CTL_REPORT_PAGE_H
#define CTL_REPORT_PAGE_H

#include "ctl/code/made.h"
#include "ctl/report/series.h"
#include "ctl/report/use.h"

/* All of it is its own; what is NULL, or empty, is left out. */
struct report_run {
	json_t *run;         /* status */
	json_t *goodput;     /* verb goodput */
	json_t *checkpoints; /* as lbctl checkpoints --json */
	json_t *settings;    /* in which it differs from the others of its group */
	char *code;          /* one line */
	char *code_changed;  /* another: what later launches found changed */
	struct made made;
	/* the run it is compared with, what differs (made.h), how the code does, or why that is not
	 * known */
	char *differs_from;
	json_t *differs;
	char *code_patch, *code_why;
	struct series series;
	struct use use;
};
void report_run_clear(struct report_run *run);

/* What stands on top: "run brisk-otter-39", and below it, where there is something to know, a note;
 * `nodes` is the answer of that verb, or NULL. Owned. */
char *page_make(const char *title, const char *note, int64_t now_ms, const struct report_run *runs,
		size_t count, const json_t *nodes);

#endif
