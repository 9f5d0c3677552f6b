/* SPDX-License-Identifier: MIT */
/* exporter.h - tells the team of these runs by a file (common/team/team.h): the live ones and those
 * that ended within 7 days, without texts, folders or tokens. Written when the ledger has changed,
 * at most once a second (and so rarely that it takes no more than a hundredth of the time), and as
 * a sign of life each minute. */
#ifndef DAEMON_NOTIFY_EXPORTER_H
#define DAEMON_NOTIFY_EXPORTER_H

#include "daemon/base/lbd.h"

struct exporter;

/* NULL when team.folder is not set. A folder that cannot be used is no error: that is told by an
 * event of kind team_refused, once, and tried again. */
struct exporter *exporter_open(struct lbd *lbd);
/* NULL is fine. The memory goes when the loop has run the close callback. */
void exporter_close(struct exporter *exporter);

#endif
