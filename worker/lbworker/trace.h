/* SPDX-License-Identifier: MIT */
/* trace.h - a Chrome trace of chosen steps: one span per operation of the backend.
 *
 * The traced backend is a table whose operations time the ones behind it; it is only put in place
 * for the steps to be traced, so others cost nothing. Spans are true where operations are done when
 * they return, as on the CPU. The file opens in https://ui.perfetto.dev and chrome://tracing. */
#ifndef LBWORKER_TRACE_H
#define LBWORKER_TRACE_H

#include <stdint.h>

#include "common/err.h"
#include "kernels/backend.h"

struct trace;

/* Starts to record; one trace at a time in a process. */
struct trace *trace_begin(const struct backend *backend);
/* The table to use instead of `backend` until trace_end. */
const struct backend *trace_backend(struct trace *trace);
/* A span of the loop itself: between trace_now() and now. */
double trace_now(void);
void trace_span(struct trace *trace, const char *name, double start_us);	/* NULL is fine */

/* Writes folder/iteration_STEP/rank0_trace.json, and releases. NULL is fine. */
int trace_end(struct trace *trace, const char *folder, int64_t step, struct err *err);

#endif
