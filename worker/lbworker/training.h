/* SPDX-License-Identifier: MIT */
/* training.h - everything that a training consists of, opened in order and closed again. */
#ifndef LBWORKER_TRAINING_H
#define LBWORKER_TRAINING_H

#include <stdint.h>

#include "common/err.h"
#include "kernels/backend.h"
#include "worker/lbworker/checkpoint.h"
#include "worker/lbworker/config.h"
#include "worker/lbworker/data.h"
#include "worker/lbworker/keeper.h"
#include "worker/lbworker/model.h"
#include "worker/lbworker/progress.h"
#include "worker/lbworker/report.h"
#include "worker/lbworker/timeline.h"
#include "worker/lbworker/trace.h"

struct training {			/* owns all of it; stays where it was opened */
	struct config config;		/* a shallow copy: what the device can do of it */
	const struct backend *backend;
	struct device *device;
	struct model *model;
	void *m, *v;			/* moments, device */
	struct decision *decision;	/* device */
	struct data *data, *validation;	/* validation may be NULL */
	int32_t *tokens, *targets;	/* [local_batch, seq] */
	const struct data *loaded;	/* whose samples these are, from loaded_first on; or NULL */
	uint64_t loaded_first;
	struct train_state state;
	struct keeper *keeper;
	struct report *report;
	struct progress *progress;
	struct timeline *timeline;	/* of memory, or NULL */
	bool is_too_large;		/* by the plan: nothing was begun */

	/* of the present step */
	struct trace *trace;		/* or NULL */
	const struct backend *untraced;	/* the table to go back to then */
	double data_s;			/* waited for samples */
};

/* Opens, loads the checkpoint to go on from, and says what is trained. On failure too, the caller
 * closes. The config is borrowed. */
int training_open(struct training *training, const struct config *config, struct err *err);
void training_close(struct training *training);

#endif
