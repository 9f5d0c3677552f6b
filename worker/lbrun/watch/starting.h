/* SPDX-License-Identifier: MIT */
/* starting.h - what a start of the trainer takes, phase by phase, from the claim, or the end of the
 * launch before, to its first step. Pure: the clock is an argument, and it is monotonic. */
#ifndef LBRUN_WATCH_STARTING_H
#define LBRUN_WATCH_STARTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/run/message.h"

/* lbrun's own (docs/PROTOCOL.md); the trainer tells others */
#define STARTING_JOB "job"       /* from the job's start to the claim */
#define STARTING_FENCE "fence"   /* until no older attempt can live any more */
#define STARTING_CHECK "check"   /* of the nodes */
#define STARTING_CLEAR "clear"   /* what the launch before left behind */
#define STARTING_PAUSE "pause"   /* between launches */
#define STARTING_SEARCH "search" /* for the checkpoint to start from */
#define STARTING_CACHE "cache"   /* making room in the node's cache */
#define STARTING_SILENT "silent" /* from the trainer's start to its first word or line */
#define STARTING_SETUP "setup"   /* from there on, where it tells nothing else */
#define STARTING_STEP "first_step"
#define STARTING_OTHER "other" /* those beyond STARTING_PHASES */

enum { STARTING_PHASES = 24 };

struct starting_phase {
	char name[PHASE_WHAT_MAX + 1];
	int64_t ms;
};

struct starting {
	bool is_on;
	struct starting_phase phases[STARTING_PHASES]; /* in the order in which they began */
	size_t count, now;
	int64_t since_ms; /* in the one that lasts, phases[now] */
};

/* A start begins with this phase. */
void starting_begin(struct starting *s, const char *name, int64_t now_ms);
/* The next phase; one that was there before goes on. Nothing of these does anything while no start
 * is going on. */
void starting_enter(struct starting *s, const char *name, int64_t now_ms);
/* Time that was spent in such a phase already. */
void starting_spent(struct starting *s, const char *name, int64_t ms);
/* The trainer printed something, or spoke. */
void starting_sign(struct starting *s, int64_t now_ms);
/* It is over: {NAME: seconds …}, in order, owned by the caller; NULL = none was going on. */
json_t *starting_end(struct starting *s, int64_t now_ms);

#endif
