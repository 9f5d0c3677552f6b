/* SPDX-License-Identifier: MIT */
/* page_sums.h - tables over all runs of a page. Pure. */
#ifndef CTL_REPORT_PAGE_SUMS_H
#define CTL_REPORT_PAGE_SUMS_H

#include "common/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/report/page.h"

/* GPU-hours by that member of a run: "owner", "group". */
void page_hours(struct buf *out, const struct report_run *runs, size_t count, const char *key);

/* Attempts × cause × node; `nodes` is the verb's answer, or NULL: those with the highest scores
 * first. */
void page_nodes(struct buf *out, const struct report_run *runs, size_t count, const json_t *nodes);

/* As a table has hours. */
const char *page_hours_text(double hours, char out[NUMBER_TEXT_MAX]);

#endif
