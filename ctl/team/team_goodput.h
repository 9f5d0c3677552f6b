/* SPDX-License-Identifier: MIT */
/* team_goodput.h - where the hours of the team's runs went, as their exports tell. */
#ifndef CTL_TEAM_TEAM_GOODPUT_H
#define CTL_TEAM_TEAM_GOODPUT_H

#include <jansson.h>
#include <stdbool.h>

/* Is any told? An lbd older than lbctl tells none, and a new one not in its first minute. */
bool team_tells_goodput(const json_t *run);
/* As the verb goodput answers (docs/PROTOCOL.md), without causes; of that week ("2026-W47"), of the
 * "last7d", or (NULL) from the beginning. A new reference; NULL where none is told. */
json_t *team_goodput(const json_t *run, const char *of);

#endif
