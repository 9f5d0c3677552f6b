/* SPDX-License-Identifier: MIT */
/* progress.h - how fast a run goes, when it will be done, and one line that says so. Pure. */
#ifndef CTL_BASE_PROGRESS_H
#define CTL_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "ctl/base/text.h"

enum { PACE_SAMPLES = 32 };

/* The newest steps and when they were made. */
struct pace {
	struct {
		int64_t step;
		double time; /* seconds */
	} samples[PACE_SAMPLES];
	int count, next;
};

/* A step that is not above the last one begins anew: the run went back to a checkpoint. */
void pace_add(struct pace *pace, int64_t step, double time);
void pace_reset(struct pace *pace);
/* Steps per second; NaN until two steps are known. */
double pace_rate(const struct pace *pace);
/* Milliseconds until `target`; -1 when nobody can tell. */
int64_t pace_eta_ms(const struct pace *pace, int64_t step, int64_t target);

/* What the live line shows. Texts are borrowed and clean. */
struct progress {
	const char *run, *state;
	int64_t step, target; /* -1 = unknown */
	double loss, tokens_per_s;
	int64_t eta_ms; /* -1 = unknown */
};

/* Fills all but eta_ms from a run object. */
void progress_from_run(struct progress *progress, const json_t *run);

/* At most `width` columns: least important parts are left out, a bar takes what room is left.
 * Width 0: all parts, no bar. Owned by the caller. */
char *progress_line(const struct progress *progress, int width, bool utf8);

#endif
