/* SPDX-License-Identifier: MIT */
/* page_run.h - one run of a page. Pure. */
#ifndef CTL_REPORT_PAGE_RUN_H
#define CTL_REPORT_PAGE_RUN_H

#include "common/base/mem.h"
#include "ctl/report/page.h"

/* The run that stands there, from 0, in the table of all. */
void page_run(struct buf *out, size_t at, const struct report_run *run);

#endif
