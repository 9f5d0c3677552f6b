/* SPDX-License-Identifier: MIT */
/* colleague.h - of a colleague's run what lbd would tell. */
#ifndef CTL_TEAM_COLLEAGUE_H
#define CTL_TEAM_COLLEAGUE_H

#include <jansson.h>

#include "common/run/verbs.h"

struct ctl;
struct err;

/* What lbd would answer to `verb` (status, progress, events, logs, goodput) about OWNER/NAME, from
 * the team's export and the run's files; in the same form (docs/PROTOCOL.md), as far as it is
 * known. A new reference, or NULL with err. */
json_t *colleague_ask(struct ctl *ctl, enum verb verb, const char *word, const json_t *args,
		      struct err *err);

#endif
