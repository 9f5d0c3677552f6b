/* SPDX-License-Identifier: MIT */
/* cron/ - makes runs of what is due.
 *
 * cron.h - periodic jobs: what is due becomes a run, once.
 *
 * Each minute the folder is read anew (cron_load.h), each entry is asked what is due (cron_plan.h),
 * and each tick is submitted as a run named ENTRY-YYYYMMDDTHHMMZ. Its row is written before, and
 * changes together with the run's: no tick is lost or happens twice, whatever crashes. */
#ifndef DAEMON_CRON_CRON_H
#define DAEMON_CRON_CRON_H

#include "daemon/control/control.h"

struct cron;

/* Reads what was seen from the ledger, and starts the first turn. NULL with err. */
struct cron *cron_open(struct lbd *lbd, struct err *err);
/* The memory goes when the loop has run the close callbacks. */
void cron_close(struct cron *cron);

/* Handlers: the data, or NULL with err. */
json_t *cron_ls(struct request *r, struct err *err);
json_t *cron_set_enabled(struct request *r, struct err *err);
/* Answers the request when the run is there, or cannot be. */
void cron_run_now(struct request *r);

#endif
