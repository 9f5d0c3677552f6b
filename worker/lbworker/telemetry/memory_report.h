/* SPDX-License-Identifier: MIT */
/* memory_report.h - out of memory on a GPU: who holds what, beside what the plan said, for people
 * and as JSON. */
#ifndef LBWORKER_MEMORY_REPORT_H
#define LBWORKER_MEMORY_REPORT_H

#include "kernels/backend.h"
#include "worker/lbworker/telemetry/plan.h"
#include "worker/lbworker/telemetry/trace.h"

/* Writes FOLDER/iteration_STEP/rankRANK_out_of_memory.json and prints the same as a table; `why` is
 * the failure. A file that cannot be written is a warning: the table is there. */
void memory_report(const struct trace_place *place, const struct memory_use *use,
		   const struct plan *plan, const char *why, FILE *to);

#endif
