/* SPDX-License-Identifier: MIT */
/* checkpoint_names.h - what who writes a checkpoint and who reads it call its files and arrays. */
#ifndef LBWORKER_CHECKPOINT_NAMES_H
#define LBWORKER_CHECKPOINT_NAMES_H

#include <stddef.h>

#define CHECKPOINT_WEIGHTS "model.safetensors"
#define CHECKPOINT_MEAN "model_ema.safetensors"
#define CHECKPOINT_ADAPTER "adapter_model.safetensors"
#define CHECKPOINT_ADAPTER_CONFIG "adapter_config.json"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define CHECKPOINT_STATE "train_state.json"
#define CHECKPOINT_LOST "lost." /* before the names of tensors: what bf16 weights have lost */

enum { CHECKPOINT_STATE_FORMAT = 1 };

/* Before the names of tensors, of the first (k = 0) and second moments. */
static inline const char *checkpoint_moment_prefix(size_t k)
{
	return k == 0 ? "exp_avg." : "exp_avg_sq.";
}

/* The scales of 8-bit moments. */
static inline const char *checkpoint_scale_name(size_t k)
{
	return k == 0 ? "exp_avg_scale" : "exp_avg_sq_scale";
}

#endif
