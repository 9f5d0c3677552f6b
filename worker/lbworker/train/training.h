/* SPDX-License-Identifier: MIT */
/* training.h - everything that a training consists of, opened in order and closed again. */
#ifndef LBWORKER_TRAINING_H
#define LBWORKER_TRAINING_H

#include <stdint.h>

#include "common/base/err.h"
#include "kernels/backend.h"
#include "worker/lbworker/checkpoint/checkpoint.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/checkpoint/checkpointer.h"
#include "worker/lbworker/lora/lora.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/ranks/sharded.h"
#include "worker/lbworker/telemetry/progress.h"
#include "worker/lbworker/telemetry/report.h"
#include "worker/lbworker/telemetry/timeline.h"
#include "worker/lbworker/telemetry/trace.h"

/* owns all of it; stays where it was opened */
struct training {
	struct config config;    /* a shallow copy: what the device can do of it */
	struct ranks *ranks;     /* borrowed */
	struct config_mesh mesh; /* ours among them */
	/* some of them, with us: with the same part of the model; of those, with the same samples;
	 * with the other slices of the model */
	struct ranks data_ranks, context_ranks, tensor_ranks;
	/* with the same samples and slice, one of each stage; and all with the same slice */
	struct ranks pipe_ranks, plane_ranks;
	struct sharded *sharded; /* NULL: one rank, and passes add to the gradient in place */
	struct rank_note note;   /* what we tell the others in the next step */
	struct rank_note *notes; /* [ranks->size] what all have told in the last one */
	unsigned orders;         /* of all ranks, not yet obeyed; flags of enum report_order */
	const struct backend *backend;
	struct device *device;
	struct model *model;
	struct precision *precision;    /* or NULL */
	struct kept kept;               /* by the optimizer */
	struct lora *lora;              /* adapters, which alone are trained; or NULL */
	struct step_control *control;   /* device */
	struct data *data, *validation; /* validation may be NULL */
	int32_t *tokens, *targets;      /* [local_batch, seq] */
	const struct data *loaded;      /* whose samples these are, from loaded_first on; or NULL */
	uint64_t loaded_first;
	struct train_state state;
	struct tokenizer_file tokenizer; /* of the data; name NULL: it came without one */
	struct checkpointer *checkpointer;
	struct report *report;
	struct progress *progress;
	struct timeline *timeline; /* of memory, or NULL */
	bool is_too_large;         /* by the plan: nothing was begun */

	/* of the present step */
	struct trace *trace;            /* or NULL */
	struct comm_span *exchanges;    /* of the step that is traced */
	struct arrays_span *arrays;     /* the same on a device */
	const struct backend *untraced; /* the table to go back to then */
	double data_s;                  /* waited for samples */
	uint64_t *loads;                /* of experts, as model->loads; or NULL: expert_loads.h */
};

/* Samples from `first` on into tokens and targets, unless they are there already. */
int training_samples(struct training *training, const struct data *data, uint64_t first,
		     struct err *err);

/* Passes of a validation, the tokens that it is a mean over, and samples of a pass with what the
 * sum of its losses counts for. Of all data a sample that is left behind whole batches fills a pass
 * of its own, so that each counts once. */
int64_t training_validation_passes(const struct training *training);
int64_t training_validation_tokens(const struct training *training);
int training_validation_samples(struct training *training, int64_t pass, double *weight,
				struct err *err);

/* Opens, loads the checkpoint to go on from, and says what is trained. On failure too, the caller
 * closes. Config and ranks are borrowed. */
int training_open(struct training *training, const struct config *config, struct ranks *ranks,
		  struct err *err);
void training_close(struct training *training);

#endif
