/* SPDX-License-Identifier: MIT */
/* timeline.h - what memory a training holds, by class, from its first step to its last.
 *
 * Classes that are allocated once (weights, gradients, ...) are known exactly; what the kernel says
 * is resident beyond them is "other", and pages of mapped files (data, libraries) are "files". The
 * file opens in https://ui.perfetto.dev as a counter track, on the same clock as traces of steps;
 * it is an array of one event a line that may be cut short. */
#ifndef LBWORKER_TIMELINE_H
#define LBWORKER_TIMELINE_H

#include <stdint.h>

#include "common/base/err.h"
#include "kernels/backend.h"
#include "worker/lbworker/telemetry/trace.h"

/* bytes of this process, by what asked for them */
struct timeline_classes {
	uint64_t weights, gradients, moments, activations;
	uint64_t checkpoint_copy; /* that async saving writes from; untouched before the first */
};

struct timeline;

/* Writes folder/iteration_STEP/rankRANK_memory.json, STEP being the first of this launch. With a
 * `gpu` (whose table has `memory`; else NULL) what is held of its memory is a track of its own. */
struct timeline *timeline_open(const struct trace_place *place,
			       const struct timeline_classes *classes, const struct backend *gpu,
			       struct device *device, struct err *err);
/* A sample now, under the name of what has just happened, like "step" or "checkpoint begins". */
void timeline_add(struct timeline *timeline, const char *event, int64_t step); /* NULL is fine */
/* The copy for checkpoints is written to from now on, so that it takes memory. */
void timeline_copied(struct timeline *timeline); /* NULL is fine */
void timeline_close(struct timeline *timeline);  /* NULL is fine */

#endif
