/* SPDX-License-Identifier: MIT */
/* source.h - where the runs come from: lbd, or a recording of what it answered.
 *
 * A recording is lines of JSON: {"time":T,"runs":[run…],"gone":[NAME…]}, what changed of runs since
 * the line before, and at its end {"pages":{"RUN":{"logs":TEXT,…}}}. */
#ifndef CTL_TOP_SOURCE_H
#define CTL_TOP_SOURCE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/base/command.h"
#include "ctl/top/view.h"

struct source {
	struct ctl *ctl;
	json_t *runs; /* by name, as they are now; owned */
	json_t *list; /* the same as an array, for the view; owned */
	/* of a recording */
	json_t *frames;   /* NULL: lbd is asked; owned */
	json_t *pages;    /* owned */
	size_t next;      /* frame */
	int64_t begun_ms; /* monotonic */
	FILE *record;     /* what lbd answers is written there; NULL: nowhere */
};

/* `file` NULL: the recording that is built in. */
int source_replay(struct source *source, const char *file, struct err *err);
int source_record(struct source *source, const char *file, struct err *err);
void source_fini(struct source *source);
/* source->list as of now, and *now_ms, its wall clock. */
int source_look(struct source *source, int64_t *now_ms, struct err *err);
/* For a picture without a terminal: two thirds into a recording. */
void source_skip(struct source *source);
/* What the page's command prints, or why it does not; owned. */
char *source_page(struct source *source, enum page page, const char *run);
/* Kills, or asks for a checkpoint; what came of it, as one line; owned. */
char *source_order(struct source *source, enum act_kind kind, const char *run);

#endif
