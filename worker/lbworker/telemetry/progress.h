/* SPDX-License-Identifier: MIT */
/* telemetry/ - what a training costs and how it goes: the plan before it, meters and reports while
 * it runs, traces of single steps.
 *
 * progress.h - everything a step tells: to lbrun, to the terminal, to TensorBoard. */
#ifndef LBWORKER_PROGRESS_H
#define LBWORKER_PROGRESS_H

#include "common/base/err.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/telemetry/meter.h"
#include "worker/lbworker/telemetry/report.h"

struct progress;

/* `first_step` is the next one; ranks: that train together. The report is borrowed. NULL with
 * err. */
struct progress_start {
	int64_t first_step;
	struct meter_peak peak;
	int ranks;
};
struct progress *progress_open(const struct config *config, const struct model *model,
			       struct report *report, const struct progress_start *start,
			       struct err *err);
void progress_close(struct progress *progress); /* NULL is fine */

/* Whether it is a step of metrics.log_freq, the first or the last: statistics are wanted of it. */
bool progress_is_logged(const struct progress *progress, const struct report_step *step);
/* ranks.jsonl beside TensorBoard's files, where they are wanted: a line with the times of each
 * rank, of a step that is over. The first of `count` values each, which lie so many bytes apart; in
 * ms. */
void progress_ranks(struct progress *progress, int64_t step, int count, const double *own_ms,
		    const double *data_ms, size_t stride);
/* experts.jsonl in dump_folder: a line with the tokens of a step that went to each expert, as
 * model->loads, layer by layer from the first that has experts on. */
void progress_experts(struct progress *progress, int64_t step, const struct model_shape *shape,
		      const uint64_t *loads);
/* Works out what follows from the speed (FLOP/s, MFU, memory), and tells it all. */
void progress_step(struct progress *progress, struct report_step *step);

#endif
