/* SPDX-License-Identifier: MIT */
/* cron_internal.h - what the files of cron share: cron.c takes the turns, cron_ticks.c makes runs
 * of ticks, cron_view.c answers people; cron_state.c, below them, knows the entries. */
#ifndef DAEMON_CRON_CRON_INTERNAL_H
#define DAEMON_CRON_CRON_INTERNAL_H

#include "daemon/cron/cron.h"
#include "daemon/calendar/cron_load.h"

/* What is known of an entry beyond its line; stays when the line goes and comes back, which is due
 * from then on. */
struct cron_state {
	char name[NAME_MAX_BYTES + 1];
	int64_t seen_s;
	char *disabled_by;            /* "" = enabled */
	int64_t found_s;              /* seen_s as this turn found it */
	int64_t written_s;            /* seen_s as it is in the ledger */
	bool busy;                    /* a tick is being submitted */
	char run[NAME_MAX_BYTES + 1]; /* as this */
	bool silent;                  /* people were told that it does not succeed */
	int64_t created_ms;           /* of its run that the last turn saw */
	int64_t begun_ms;             /* the same, monotonic */
};

struct cron {
	struct lbd *lbd;
	uv_timer_t timer;
	char *folder;
	struct cron_entries entries;
	json_t *problems; /* of the last reading: texts */
	struct cron_state **states;
	size_t state_count;
	struct zone *zones; /* those that entries name */
	size_t zone_count;
	int64_t zones_until_s;
	int64_t wall_ms, mono_ms; /* of the last turn */
};

/* cron_state.c: it is there from the first question on. */
struct cron_state *cron_state_of(struct cron *cron, const char *name);
int cron_state_write(struct cron *cron, struct cron_state *state, struct err *err);
/* All that the ledger has. */
int cron_states_load(struct cron *cron, struct err *err);
void cron_states_free(struct cron *cron);

/* When it is next due, its jitter included; -1 = not within the next years. */
int64_t cron_next_s(struct cron *cron, const struct cron_entry *entry, int64_t after_s);

/* A tick is due: it waits for cron_look_after, or is passed over, as the entry says. */
void cron_tick(struct cron *cron, const struct cron_entry *entry, int64_t scheduled_s,
	       bool one_of_many);
/* Submits what waits once the run before it is over; ends what runs too long. */
void cron_look_after(struct cron *cron, const struct cron_entry *entry);
/* Calls done as submit_run does. */
void cron_submit(struct cron *cron, const struct cron_entry *entry, int64_t scheduled_s,
		 void (*done)(void *arg, json_t *answer, const struct err *why), void *arg);
/* Is the run of its newest submitted tick over (or gone)? Then *run is not set. */
bool cron_last_is_over(struct cron *cron, const char *entry, struct ledger_run *run);
void cron_event(struct cron *cron, const char *kind, const char *entry, const char *text);

/* cron.c: what lies in the folder now. Pointers to entries are void after it. */
void cron_read_folder(struct cron *cron);

#endif
