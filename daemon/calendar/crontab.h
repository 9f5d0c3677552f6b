/* SPDX-License-Identifier: MIT */
/* crontab.h - what is to be done periodically, as people write it down.
 *
 *   CRON_TZ=Europe/Berlin          for the lines below it, like every NAME=VALUE line
 *   CATCH_UP=one                   none | one | all: ticks missed while lbd was down
 *   OVERLAP=skip                   skip | queue | replace: the last one still runs
 *   TIMEOUT=2h                     then it is ended
 *   JITTER=5m                      spread the starts over so long; each entry has its own moment
 *   SBATCH=--partition=cpu -N1     options of sbatch, before those of a line
 *   DATA=/scratch/ada              any other name: the environment of the jobs below it
 *   NAME=backup                    for the next entry only; else the name of its file
 *   #SCRON -q cron -t 10           the same for the next entry only, as scrontab(1) has it
 *   30 4 * * 1-5  --time=10 backup.slurm --all
 *
 * A line that is wrong is told and left out; the others hold. */
#ifndef DAEMON_CALENDAR_CRONTAB_H
#define DAEMON_CALENDAR_CRONTAB_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/names.h"
#include "daemon/calendar/cron_expr.h"
#include "daemon/calendar/cron_plan.h"

enum cron_overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_REPLACE };

struct cron_settings {
	int catch_up;       /* enum cron_catch_up */
	int overlap;        /* enum cron_overlap */
	int64_t timeout_ms; /* 0 = none */
	int64_t jitter_ms;  /* 0 = none */
};

struct cron_entry {
	char name[NAME_MAX_BYTES + 1]; /* no other entry has it */
	char *source;                  /* "FILE:LINE" or the script's path, for messages */
	char *when;                    /* as written: "30 4 * * 1-5", "@daily" */
	char *zone;                    /* "" = the machine's own */
	struct cron_expr expr;
	char **argv;    /* what to submit: a script and its arguments, or a command */
	char **options; /* of sbatch, NULL-terminated; NULL = none */
	char **env;     /* "NAME=VALUE" lines above it, NULL-terminated; NULL = none */
	char *problem;  /* why it cannot run as it is (cron_check.h); NULL: it can */
	struct cron_settings settings;
};

struct cron_entries {
	struct cron_entry *items;
	size_t count;
	char **env; /* of cron/environment, for all of them; NULL = none */
};

/* Adds the entries of a crontab to *out. `zone` (NULL or "": the machine's own) and `defaults` hold
 * until a line says otherwise. Each problem is told as "file:line: what is wrong, what is
 * allowed". */
void crontab_read(const char *text, const char *file, const char *zone,
		  const struct cron_settings *defaults, struct cron_entries *out,
		  void (*on_bad)(void *arg, const struct err *why), void *arg);

/* Takes over the strings of `entry`; frees them with ERR_LOCKED when its name is taken. */
int cron_entries_add(struct cron_entries *entries, struct cron_entry *entry, struct err *err);
/* Releases its strings. */
void cron_entry_clear(struct cron_entry *entry);
const struct cron_entry *cron_entries_find(const struct cron_entries *entries, const char *name);
void cron_entries_clear(struct cron_entries *entries);

/* "NAME = value", also with "export " in front and quotes around the value, as an owned
 * "NAME=value". NULL without err: the line is no assignment. */
char *cron_assignment(const char *line);

/* "CATCH_UP" → settings; letter case does not matter. ERR_NOT_FOUND: no such setting. */
int cron_setting(struct cron_settings *settings, const char *key, const char *value,
		 struct err *err);

/* Adds options of sbatch, as people write them: "--time=10 -N2"; a value is attached to its option.
 * Each is understood now, not when the job is due. */
int cron_options(struct cron_entry *entry, const char *text, struct err *err);

/* "cron/backup.slurm" → "backup": the name of its file without the ending. */
void cron_name_of(const char *path, char out[NAME_MAX_BYTES + 1]);

#endif
