/* SPDX-License-Identifier: MIT */
/* checkpoint.h - a training on disk: everything that makes the next step what it would have been.
 *
 * A folder step-NNNNNNNN (common/manifest.h) with
 *   model.safetensors      weights, F32, Hugging Face names      config.json  the shape, for them
 *   optimizer.safetensors  "exp_avg.NAME", "exp_avg_sq.NAME"     train_state.json  the rest
 * The random numbers and the sample order are functions of seed and position, so there is no state
 * of theirs to keep. */
#ifndef LBWORKER_CHECKPOINT_H
#define LBWORKER_CHECKPOINT_H

#include <stdint.h>

#include "common/err.h"
#include "worker/lbworker/guard.h"
#include "worker/lbworker/model.h"

struct train_state {
	int64_t step, tokens;		/* done */
	int64_t samples;		/* drawn: the loader's whole state */
	int64_t seed, seq_len;
	double loss;			/* of the last step that counted */
	struct guard guard;
	char data_digest[33], config_digest[33];
};

/* What a checkpoint reads and writes; moments have the layout of the weights. */
struct checkpoint_parts {
	struct model *model;
	float *m, *v;			/* device, [model->parameters] */
	struct train_state *state;
};

struct checkpoint_rules {
	const char *parent;		/* made when missing */
	int64_t attempt;		/* LB_ATTEMPT, or 0 */
	int64_t keep_latest_k, keep_every;
};

/* Publishes step state->step, then removes what the rules no longer keep (never the newest two, and
 * nothing that is no checkpoint). *path (absolute) is owned by the caller. After a failure the
 * older checkpoints are as they were. */
int checkpoint_save(const struct checkpoint_parts *parts, const struct checkpoint_rules *rules,
		    char **path, struct err *err);

/* Fills weights, moments and state from a folder whose digests hold. state's seed, seq_len and
 * data_digest must be set to what the config says: a checkpoint of another training is refused. */
int checkpoint_load(const struct checkpoint_parts *parts, const char *folder, struct err *err);

#endif
