/* SPDX-License-Identifier: MIT */
/* trace.h - a Chrome trace of chosen steps: one span per operation of the backend.
 *
 * The traced backend is a table whose operations time the ones behind it; it is only put in place
 * for the steps to be traced, so others cost nothing. Where operations are done when they return,
 * as on the CPU, a span is the operation; where a device works beside us there are two, the call
 * and what the device did by its own clock. The file opens in https://ui.perfetto.dev,
 * chrome://tracing, and what reads PyTorch's profiles (TensorBoard, HolisticTraceAnalysis). */
#ifndef LBWORKER_TRACE_H
#define LBWORKER_TRACE_H

#include <stdint.h>

#include "common/base/err.h"
#include "kernels/backend.h"
#include "kernels/comm.h"

struct trace;

/* Starts to record; one trace at a time in a process. */
struct trace *trace_begin(const struct backend *backend);
/* The table to use instead of `backend` until trace_end. */
const struct backend *trace_backend(struct trace *trace);
/* A span of the loop itself: between start_us, by clock_mono_us(), and now. */
void trace_span(struct trace *trace, const char *name, double start_us); /* NULL is fine */

/* What went to and from other ranks meanwhile: a track of its own, beside the operations. */
void trace_exchanges(struct trace *trace, const struct comm_span *span, size_t count);

/* The first mark of a device that keeps its own time: what it does is told from here on. */
void trace_anchor(struct trace *trace, struct device *device);
/* What a device did for other ranks: a track of its own, too. */
void trace_arrays(struct trace *trace, const struct arrays_span *span, size_t count);

struct trace_place {
	const char *folder;
	int64_t step;
	int rank, world;
};
/* Writes folder/iteration_STEP/rankRANK.UNIX-MS.pt.trace.json, and releases. NULL is fine. */
int trace_end(struct trace *trace, const struct trace_place *place, struct err *err);

#endif
