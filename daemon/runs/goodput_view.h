/* SPDX-License-Identifier: MIT */
/* goodput_view.h - where the time of a run of the ledger went; the answer to `lbctl goodput`. */
#ifndef DAEMON_RUNS_GOODPUT_VIEW_H
#define DAEMON_RUNS_GOODPUT_VIEW_H

#include "daemon/control/control.h"
#include "daemon/runs/goodput.h"
#include "sql/ledger.h"

/* What the ledger knows of one run, to be counted for any stretch of its time. Read now: it stays
 * as it was. NULL with err. */
struct goodput_history;
struct goodput_history *goodput_history_read(struct ledger *ledger, const struct ledger_run *run,
					     struct err *err);
void goodput_history_free(struct goodput_history *history); /* NULL is fine */
/* Between two moments of wall time, as far as the run lived then; since_ms 0: from its
 * beginning. */
void goodput_history_count(const struct goodput_history *history, int64_t since_ms,
			   int64_t until_ms, struct goodput *out);

/* GPUs of the job that is made of the run in this folder; -1 with err. Of a folder that was cleared
 * away (logs.retain_logs of periodic jobs) nobody knows: 0. */
int64_t goodput_gpus(const struct lbd *lbd, const char *run_dir, struct err *err);

json_t *goodput_answer(struct request *r, struct err *err);

#endif
