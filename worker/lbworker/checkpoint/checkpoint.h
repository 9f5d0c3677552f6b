/* SPDX-License-Identifier: MIT */
/* checkpoint/ - weights and trainings on disk: ours and Hugging Face's, when they are written,
 * which are kept, where a training goes on.
 *
 * checkpoint.h - a training on disk: everything that makes the next step what it would have been.
 *
 * A folder step-NNNNNNNN (common/manifest/manifest.h) with
 *   model.safetensors      weights, F32, Hugging Face names      config.json  the shape, for them
 *   optimizer.safetensors  "exp_avg.NAME", "exp_avg_sq.NAME"     train_state.json  the rest
 *   model_ema.safetensors  the mean of the weights, where it is kept, as model.safetensors
 *   adapter_model.safetensors, adapter_config.json  where adapters are trained (lora/), as peft has
 *   them;
 *                          model.safetensors has them in, and the optimizer's moments are theirs
 *   tokenizer.json (or tokenizer.model)  where the data came with one
 * The random numbers and the sample order are functions of seed and position, so there is no state
 * of theirs to keep. */
#ifndef LBWORKER_CHECKPOINT_H
#define LBWORKER_CHECKPOINT_H

#include <stdint.h>

#include "common/base/err.h"
#include "worker/lbworker/lora/lora.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/optim/kept.h"
#include "worker/lbworker/optim/noise_scale.h"
#include "worker/lbworker/optim/spike_filter.h"
#include "worker/lbworker/ranks/sharded.h"

struct train_state {
	int64_t step, tokens; /* done */
	int64_t samples;      /* drawn: the loader's whole state */
	int64_t seed, seq_len;
	double loss; /* of the last step that counted */
	struct spike_filter spike_filter;
	struct noise_scale noise;
	int64_t averaged; /* steps in the mean of weights */
	struct {
		const char *name; /* of those whose memory is of no use to another: static */
		double lr, beta1, beta2, eps, weight_decay; /* for who takes it over */
	} optimizer;
	char data_digest[33], config_digest[33];
};

/* A tokenizer as a file: its usual name and content. */
struct tokenizer_file {
	char *name, *bytes;
	size_t len;
};

/* What a checkpoint reads and writes; moments have the layout of the weights, and the type that the
 * model's options say. Files hold fp32 either way. */
struct checkpoint_parts {
	struct model *model;
	const struct kept *kept;
	struct train_state *state;
	/* goes into each checkpoint as it is, so that whoever has one can read and write text;
	 * NULL: none */
	const struct tokenizer_file *tokenizer;
	struct lora *lora; /* NULL: all weights are trained, not adapters */
	const char *base;  /* with lora: where the model comes from that is adapted */
	struct ranks *ranks;
	struct sharded *sharded; /* NULL: all is here */
};

struct checkpoint_rules {
	const char *parent;  /* made when missing */
	int64_t attempt;     /* LB_ATTEMPT, or 0 */
	const char *run_dir; /* LB_RUN_DIR, or NULL: where newer attempts show */
	int64_t keep_latest_k, keep_every;
};

/* The state of one moment in host memory, so that training may go on while it is written. */
struct checkpoint_copy;
/* Room for it, pre-touched; NULL with err without memory. The parts are borrowed. */
struct checkpoint_copy *checkpoint_copy_create(const struct checkpoint_parts *parts,
					       struct err *err);
void checkpoint_copy_destroy(struct checkpoint_copy *copy); /* NULL is fine */
/* Of several ranks the first has the copy, and the others give it what they hold. -1: one of them
 * has failed, and there is no copy. */
int checkpoint_copy_take(struct checkpoint_copy *copy, const struct checkpoint_parts *parts,
			 struct err *err);
int checkpoint_copy_give(const struct checkpoint_parts *parts, struct err *err);

/* Publishes the copy, then removes what the rules no longer keep (never the newest two, and nothing
 * that is no checkpoint). *path (absolute) is owned by the caller. After a failure the older
 * checkpoints are as they were. ERR_REFUSED: a newer attempt of the run has begun, so nothing was
 * published. Looks at nothing but the copy, the rules and the model's names and shape: a thread of
 * its own may call it. */
int checkpoint_publish(struct checkpoint_copy *copy, const struct checkpoint_rules *rules,
		       char **path, struct err *err);

/* Fills weights, moments and state from a folder whose digests hold; with lora adapters, whose base
 * is in the weights, and begun, already. state's seed, seq_len and
 * data_digest must be set to what the config says: a checkpoint of another training is refused. */
int checkpoint_load(const struct checkpoint_parts *parts, const char *folder, struct err *err);

#endif
