/* SPDX-License-Identifier: MIT */
/* config/ - the one file that says it all, and what other programs call the same keys.
 *
 * config.h - what a training is told: one TOML file in torchtitan's words, one table of keys. */
#ifndef LBWORKER_CONFIG_H
#define LBWORKER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/config/keys.h"
#include "worker/lbworker/optim/spike_filter.h"
#include "worker/lbworker/lora/lora.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/base/device.h"
#include "worker/lbworker/optim/optimizer.h"
#include "worker/lbworker/optim/schedule.h"
#include "worker/lbworker/recipes/precision.h"

enum async_mode { ASYNC_DISABLED, ASYNC_ON, ASYNC_PINNED };
enum compute_choice {
	COMPUTE_CHOICE_FP32,
	COMPUTE_CHOICE_BF16,
	COMPUTE_CHOICE_AUTO
}; /* auto: bf16 on a GPU */
enum reshard { RESHARD_DEFAULT, RESHARD_ALWAYS, RESHARD_NEVER };
enum reduction_order { REDUCTION_EXACT, REDUCTION_FAST };
enum recompute {
	RECOMPUTE_NONE,      /* everything is kept */
	RECOMPUTE_SELECTIVE, /* norms and activations again, matrix products are kept */
	RECOMPUTE_FULL,      /* the whole layer again, from its input */
	RECOMPUTE_AUTO       /* as little as fits */
};
enum optimizer_name { OPTIMIZER_ADAMW, OPTIMIZER_ADAMW8BIT, OPTIMIZER_MUON };
enum export_dtype { EXPORT_FP32, EXPORT_BF16, EXPORT_FP16 };

struct config {
	char *description, *dump_folder;
	int model_name;
	char *flavor;
	/* sizes over those of the flavor; 0: as there. Afterwards what the model has. */
	int64_t dim, n_layers, n_heads, n_kv_heads, head_dim, ffn_dim, multiple_of, vocab_size;
	int64_t max_seq_len;
	double ffn_dim_multiplier, norm_eps, rope_theta, rope_factor, rotary_pct;
	int64_t window, full_every; /* as in struct model_shape; -1: none */
	double local_theta, query_scalar, score_softcap, logit_softcap;
	int64_t num_experts, top_k, moe_inter_dim, num_shared_experts, n_dense_layers;
	bool route_norm;
	double route_scale;
	bool tied;
	char *init_std_text;
	struct umup umup;
	int optimizer_name;     /* enum optimizer_name */
	int gradients, moments; /* enum compute, enum moments */
	int weights_dtype;      /* enum compute */
	bool bf16_stochastic_round, kahan_sum;
	double momentum;
	bool nesterov;
	int64_t ns_steps;
	double ema_decay;
	int64_t lora_rank;
	double lora_alpha;
	struct key_strings lora_targets;
	int adjust_lr; /* enum muon_rate */
	double lr, beta1, beta2, eps, weight_decay;
	int decayed; /* 0: matrices, 1: all */
	int64_t warmup_steps, schedule_steps;
	double decay_ratio;
	int decay_type;
	double min_lr_factor;
	int64_t local_batch_size, global_batch_size, seq_len, steps;
	struct key_ints batch_ramp;
	double max_norm;
	struct spike_rules spike_rules;
	int64_t document_end; /* -1: none */
	double label_smoothing, z_loss;
	double expert_loss;  /* of struct model_options */
	double balance_rate; /* of model_balance() */
	int64_t seed, threads;
	int device; /* enum device_choice */
	bool deterministic;
	int64_t device_index;
	/* no keys: plan_choose() */
	size_t head_elements;
	unsigned again, more; /* where recompute is AUTO, as in struct model_options */
	size_t more_layers;
	char *device_cache;
	int compute_choice; /* enum compute_choice */
	/* ranks; see config_share() */
	int64_t local_ranks, replicate_degree, shard_degree, zero_stage, reduction_width;
	int64_t tensor_degree, context_degree;
	int64_t pipeline_degree, pipeline_microbatch, layers_per_stage;
	int64_t first_stage_less, last_stage_less; /* layers that tables and head count for */
	char *pipeline_schedule;
	bool sequence_parallel;
	int tensor_rank, context_rank;     /* no keys: which of those degrees we are */
	int pipeline_rank, pipeline_depth; /* no keys: the stage, and what is under way in it */
	int reshard, reduction;            /* enum reshard, enum reduction_order */
	int64_t timeout_ms, init_timeout_ms;
	bool lenient; /* no key: degrees that do not fit are told, not refused */
	char *dataset_path;
	struct key_strings dataset_mix;
	bool dataset_verify;
	bool checkpoint_enable;
	char *checkpoint_folder;
	char *initial_load_path;
	bool initial_load_model_only; /* else moments and step, too */
	int export_dtype;             /* enum export_dtype */
	int async_mode;               /* enum async_mode */
	char *recipe;
	bool only_faster, fp8_gather;
	struct key_strings filter_fqns, recipe_rules;
	int64_t first_layers, last_layers;
	int recompute; /* enum recompute */
	char *recompute_option;
	bool interval_auto;
	int64_t checkpoint_interval, keep_latest_k, keep_every;
	char *max_bytes, *stage, *stage_rate, *save_every; /* lbrun's to keep to */
	int64_t log_freq;
	bool noise_scale;
	bool enable_tensorboard;
	char *save_tb_folder;
	double peak_tflops;
	bool validation_enable;
	char *validation_path;
	int64_t validation_batch, validation_seq_len, validation_freq, validation_steps;
	bool enable_profiling;
	int64_t profile_freq;
	char *save_traces_folder;
	bool enable_memory_snapshot;
	char *save_memory_snapshot_folder;

	/* worked out from the above */
	struct model_shape shape;
	int compute; /* enum compute; the device may change it */
	double init_std;
	int64_t recompute_every; /* layers; 0: by operation */
	int64_t accumulate;      /* micro-batches in a step, once the batch is full */
	char *checkpoint_path;   /* LB_CHECKPOINT_DIR, or dump_folder/folder */
	/* of the effective values: of those that change what a step computes, and of those that all
	 * ranks must have */
	char digest[33], digest_of_all[33];
};

/* One row a key, each for a member of struct config: training_keys.c. */
extern const struct key training_keys[];
extern const size_t training_key_count;

/* What becomes of parallelism.* among so many ranks. */
struct config_mesh {
	int replicate, shard, stage; /* stage: of ZeRO, 0 to 3; shard: with those of a sequence */
	int context;   /* ranks that share a sequence, neighbours among those of a shard */
	int tensor;    /* ranks that hold a slice each; neighbours in number */
	int pipeline;  /* stages; of each there are replicate * shard * tensor ranks, neighbours */
	int64_t width; /* of the trees of gradients; 0: there are none, one rank */
};
/* Takes part of what a rank does not know before it knows the others: the degrees, and
 * global_batch_size = -1. ERR_USAGE with the numbers when they do not fit. */
int config_share(struct config *config, int ranks, struct config_mesh *mesh, struct err *err);

/* With stages a pass is a micro-batch of theirs, in all that counts passes. */
void config_cut_batches(struct config *config);

struct config_order {
	const char *path;         /* TOML, or JSON as torchtitan dumps it */
	char *const *assignments; /* "section.key=value" */
	size_t count;
	bool lenient;      /* a key that we cannot honour is left out, and told */
	bool without_data; /* it is fine when no dataset is named */
	/* Both may be NULL. One line each, `file:line: key: what and why`: what is left out, taken
	 * for another value, or other than a program of the same keys has it; and every mistake. */
	FILE *notes, *refused;
};

/* Reads the file, applies the assignments, checks everything. On failure err is the first mistake,
 * `file:line: section.key: what is wrong, what is allowed`, and *out is cleared. */
int config_load(struct config *out, const struct config_order *order, struct err *err);
void config_clear(struct config *config);

/* The name of its shape, for people: the flavor, or that it has none. */
const char *config_flavor(const struct config *config);

/* The effective values as TOML. */
void config_print(const struct config *config, FILE *to);

/* Micro-batches of the step that begins after `samples` sequences. */
int64_t config_accumulate(const struct config *config, int64_t samples);
/* Sequences of the first `steps` steps; exact below 2^53. */
double config_samples(const struct config *config, int64_t steps);
struct model_options config_model_options(const struct config *config);
struct schedule config_schedule(const struct config *config);
/* What quantize.* asks for; *out NULL: nothing is of few bits. *which as in precision_create. */
int config_precision(const struct config *config, struct precision **out, const char **which,
		     struct err *err);
struct optimizer config_optimizer(const struct config *config);
struct lora_rules config_lora(const struct config *config);

#endif
