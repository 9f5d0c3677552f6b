/* SPDX-License-Identifier: MIT */
/* team_goodput.h - where the hours of runs went, as the team is told: by weeks, so that whoever
 * reads it can sum for any of them. */
#ifndef DAEMON_NOTIFY_TEAM_GOODPUT_H
#define DAEMON_NOTIFY_TEAM_GOODPUT_H

#include <jansson.h>

#include "daemon/base/lbd.h"

struct team_goodput;

struct team_goodput *team_goodput_open(struct lbd *lbd);
void team_goodput_close(struct team_goodput *t); /* NULL is fine */

/* Around one export. Counting takes a few milliseconds of it at most: what was counted is kept, a
 * minute for live runs, an hour for those that are over. */
void team_goodput_begin(struct team_goodput *t);
/* The member "goodput" of a run (docs/PROTOCOL.md, section 6), borrowed until team_goodput_end;
 * NULL: not counted yet. */
json_t *team_goodput_of(struct team_goodput *t, const struct ledger_run *run, int64_t now_ms);
/* False: there was no time for some, so the next export tells more. */
bool team_goodput_end(struct team_goodput *t);

#endif
