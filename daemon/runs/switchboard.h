/* SPDX-License-Identifier: MIT */
/* switchboard.h - lbd's view of the switch files (common/team/switches.h): looked at whenever the
 * kernel says that something changed, and every second for file systems where it does not say
 * so. */
#ifndef DAEMON_RUNS_SWITCHBOARD_H
#define DAEMON_RUNS_SWITCHBOARD_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/team/switches.h"

struct lbd;
struct switchboard;

/* Makes $LB_HOME/switches with its README where it is missing, gives it to the team, looks at it
 * once, and wakes the engine whenever it has changed. A folder that cannot be trusted is no error:
 * it is told, and no switch counts until it is mended. */
struct switchboard *switchboard_open(struct lbd *lbd);
/* NULL is fine. The memory goes when the loop has run the close callbacks. */
void switchboard_close(struct switchboard *board);

/* Of the last look, and so valid until the loop goes on; a NULL board has none. */
bool switchboard_is_known(const struct switchboard *board);
/* Does a file of this name lie in the folder, whether it counts or not? */
bool switchboard_has(const struct switchboard *board, const char *file);
/* The strongest one for this run; NULL = none. While the folder holds more than a look shows, those
 * that name the run, its group, its user or ALL are looked up in it; valid until the next call. */
const struct switch_file *switchboard_find(struct switchboard *board, const char *name,
					   const char *group, const char *owner);

/* ERR_LOCKED with who left it and how to take it away, when a switch of at least this strength
 * stands against this run; looks at the folder first. */
int switchboard_allows(struct switchboard *board, const char *name, const char *group,
		       const char *owner, enum switch_level least, struct err *err);

#endif
