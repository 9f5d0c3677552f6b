/* SPDX-License-Identifier: MIT */
/* record.h - runs/NAME/record.json: what the ledger says of a run and its jobs, beside the files
 * that say the rest. With it a lost ledger is made anew (recover.h), and a run that was killed
 * stays killed.
 *
 *   {"version":1,"ledger":ID,"owner","owner_uid","state","cause","text","scheduler","group","wanted",
 *    "wanted_by","wanted_reason","wanted_switch","wanted_ms","created_ms","ended_ms","backoff_until_ms",
 *    "failures","resume_from","attempts":[{"number","token","state","job_id","submit_time","cause",
 *    "exit_code","signal","text","nodes","created_ms","released_ms","started_ms","ended_ms","excluded"}]}
 */
#ifndef DAEMON_RECOVER_RECORD_H
#define DAEMON_RECOVER_RECORD_H

#include <jansson.h>

#include "common/base/err.h"
#include "sql/ledger.h"

/* From now on the record of each run is written anew when a commit has changed it; first those of
 * live runs, for the lbd before us may have died in between. */
int record_keep(struct ledger *ledger, struct err *err);

/* The record in this folder; the caller decrefs. NULL: there is none that can be read. */
json_t *record_load(const char *run_dir);
/* Fills in what the record tells; strings are borrowed from it. */
void record_run(const json_t *record, struct ledger_run *out);
/* That of this number; false: it does not know it. */
bool record_attempt(const json_t *record, int64_t number, struct ledger_attempt *out);

#endif
