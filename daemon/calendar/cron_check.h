/* SPDX-License-Identifier: MIT */
/* cron_check.h - can a periodic job run at all? Looked at when it is read, not first when it is
 * due. */
#ifndef DAEMON_CALENDAR_CRON_CHECK_H
#define DAEMON_CALENDAR_CRON_CHECK_H

#include <stdbool.h>

#include "daemon/calendar/crontab.h"

/* The file that the entry starts, which may be named without its folder; owned. */
char *cron_entry_path(const char *folder, const struct cron_entry *entry);

/* A batch script: one of whose first lines is for sbatch. Others are run as they are. */
bool cron_is_batch(const char *path, const char *text);

/* Why the entry cannot run: it is never due, its file is not there or not executable, or it submits
 * itself. `job_path` is the PATH that its job gets. Owned; NULL: nothing is known to be in its
 * way. */
char *cron_entry_problem(const char *folder, const struct cron_entry *entry, const char *job_path);

#endif
