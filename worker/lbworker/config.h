/* SPDX-License-Identifier: MIT */
/* config.h - what a training is told: one TOML file in torchtitan's words, one table of keys. */
#ifndef LBWORKER_CONFIG_H
#define LBWORKER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/keys.h"
#include "worker/lbworker/guard.h"
#include "worker/lbworker/model.h"
#include "worker/lbworker/device.h"
#include "worker/lbworker/optimizer.h"
#include "worker/lbworker/schedule.h"

enum async_mode { ASYNC_DISABLED, ASYNC_ON, ASYNC_PINNED };

struct config {
	char *description, *dump_folder;
	int model_name;
	char *flavor;
	char *init_std_text;
	struct umup umup;
	int optimizer_name, moments;	/* moments: enum compute */
	double lr, beta1, beta2, eps, weight_decay;
	int64_t warmup_steps, schedule_steps;
	double decay_ratio;
	int decay_type;
	double min_lr_factor;
	int64_t local_batch_size, global_batch_size, seq_len, steps;
	struct key_ints batch_ramp;
	double max_norm;
	struct guard_rules guard;
	int64_t seed, threads;
	int device;			/* enum device_wish */
	bool deterministic;
	char *device_cache;
	int compute;			/* enum compute */
	char *dataset_path;
	struct key_strings dataset_mix;
	bool dataset_verify;
	bool checkpoint_enable;
	char *checkpoint_folder;
	char *initial_load_path;
	int async_mode;			/* enum async_mode */
	int recompute;
	char *recompute_option;
	int64_t checkpoint_interval, keep_latest_k, keep_every;
	int64_t log_freq;
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
	const struct model_flavor *model;
	struct model_shape shape;	/* of that flavour, as this training has it */
	double init_std;
	int64_t recompute_every;	/* layers; 0: by operation */
	int64_t accumulate;		/* micro-batches in a step, once the batch is full */
	char *checkpoint_path;		/* LB_CHECKPOINT_DIR, or dump_folder/folder */
	char digest[33];		/* of the effective values */
};

/* Reads the file, applies `section.key=value` assignments, checks everything. On failure err is
 * `file:line: section.key: what is wrong, what is allowed` and *out is cleared. */
int config_load(struct config *out, const char *path, char *const *assignments, size_t count,
		struct err *err);
/* The same. With `lenient` a key that we cannot honour is left out. What is left out, or taken for
 * another value, is written to `notes` (may be NULL) as `file:line: key: what and why`. */
int config_load_as(struct config *out, const char *path, char *const *assignments, size_t count,
		   bool lenient, FILE *notes, struct err *err);
void config_clear(struct config *config);

/* The effective values as TOML. */
void config_print(const struct config *config, FILE *to);

/* Micro-batches of the step that begins after `samples` sequences. */
int64_t config_accumulate(const struct config *config, int64_t samples);
struct model_options config_model_options(const struct config *config);
struct schedule config_schedule(const struct config *config);
struct optimizer config_optimizer(const struct config *config);

#endif
