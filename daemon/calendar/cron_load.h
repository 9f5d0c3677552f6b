/* SPDX-License-Identifier: MIT */
/* cron_load.h - the folder of periodic jobs, read anew whenever it is asked.
 *
 *   cron/crontab               crontab.h
 *   cron/environment           NAME=VALUE lines, for the environment of all jobs
 *   cron/cron.hourly/          scripts (*.slurm, *.sh) and run specs (*.toml) that are submitted
 *   cron/cron.daily/           each period; move one away to stop it. `#LB KEY=VALUE` lines in a
 *   cron/cron.weekly/          script set what NAME=VALUE lines set in a crontab.
 *   cron/cron.monthly/
 *
 * What lies there runs as the user of lbd: a file or folder that others may write is refused. */
#ifndef DAEMON_CALENDAR_CRON_LOAD_H
#define DAEMON_CALENDAR_CRON_LOAD_H

#include <stddef.h>

#include "daemon/calendar/crontab.h"

enum cron_period { CRON_HOURLY, CRON_DAILY, CRON_WEEKLY, CRON_MONTHLY, CRON_PERIODS };

struct cron_config {
	char *folder;             /* NULL: HOME/cron */
	char *time_zone;          /* NULL: the machine's own */
	char *when[CRON_PERIODS]; /* five fields: when cron.hourly, … are due */
	struct cron_settings settings;
};

/* Every entry there is; a missing folder has none. Problems are told one by one, as
 * "file:line: what is wrong, what is allowed", and leave out what they concern. */
void cron_load(const struct cron_config *config, const char *folder, struct cron_entries *out,
	       void (*on_bad)(void *arg, const struct err *why), void *arg);

/* The text of a regular file that nobody else can change (common/base/guarded.h), and no link;
 * owned. NULL with err. */
char *cron_read(const char *path, size_t max_bytes, struct err *err);

#endif
