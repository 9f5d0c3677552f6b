/* SPDX-License-Identifier: MIT */
/* plan_choose.h - what a training keeps for its backward pass, and how many logits it holds at a
 * time, chosen for a device's memory. */
#ifndef LBWORKER_PLAN_CHOOSE_H
#define LBWORKER_PLAN_CHOOSE_H

#include "worker/lbworker/telemetry/plan.h"

/* Sets config->again, more and more_layers where activation_checkpoint.mode is "auto", and
 * config->head_elements of a GPU that computes in bf16: the least work more among all that fits
 * into `bytes`, or, where nothing does, the smallest. */
void plan_choose(struct config *config, uint64_t bytes, bool is_gpu);

#endif
