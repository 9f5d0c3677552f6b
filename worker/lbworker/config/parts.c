/* SPDX-License-Identifier: MIT */
/* parts.c - what a configuration says to the parts of a training: model, schedule, optimizer,
 * recipe. */
#include <string.h>

#include "worker/lbworker/base/rng.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/config/stages.h"

int64_t config_accumulate(const struct config *c, int64_t samples)
{
	const int64_t *ramp = c->batch_ramp.items;

	if (c->batch_ramp.count == 0 || samples >= ramp[2])
		return c->accumulate;
	int64_t increments = (c->accumulate * c->local_batch_size - ramp[0]) / ramp[1];
	double each = (double)ramp[2] / (double)increments; /* of samples, a part perhaps */
	int64_t done = (int64_t)((double)samples / each);
	return (ramp[0] + done * ramp[1]) / c->local_batch_size;
}

/* As many steps at a time as have the same batch. */
double config_samples(const struct config *c, int64_t steps)
{
	const int64_t *ramp = c->batch_ramp.items;
	int64_t samples = 0;

	while (steps > 0 && c->batch_ramp.count > 0 && samples < ramp[2]) {
		int64_t passes = config_accumulate(c, samples), left = ramp[2] - samples;
		int64_t batch = passes * c->local_batch_size, same = 1;
		while (2 * same <= steps && 2 * same * batch < left &&
		       config_accumulate(c, samples + 2 * same * batch) == passes)
			same *= 2;
		samples += same * batch;
		steps -= same;
	}
	return (double)samples +
	       (double)steps * (double)c->accumulate * (double)c->local_batch_size;
}

static enum weight_kind config_weights(const struct config *c)
{
	if (c->weights_dtype != COMPUTE_BF16)
		return WEIGHTS_FP32;
	return c->kahan_sum               ? WEIGHTS_KAHAN
	       : c->bf16_stochastic_round ? WEIGHTS_STOCHASTIC
					  : WEIGHTS_NEAREST;
}

struct model_options config_model_options(const struct config *c)
{
	struct model_options o = {
		.batch = (size_t)c->local_batch_size,
		.seq = (size_t)c->seq_len,
		.compute = (enum compute)c->compute,
		.head_elements = c->head_elements,
		.split = { c->tensor_rank, (int)c->tensor_degree, c->sequence_parallel },
		.context = { c->context_rank, (int)c->context_degree },
		.pipeline = stages_of(c),
		.moments = (enum moments)c->moments,
		.weights = config_weights(c),
		.averaged = c->ema_decay > 0,
		.is_base = c->lora_rank > 0,
		.mask_documents = c->document_end >= 0,
		.separator = (int32_t)c->document_end,
		.smoothing = (float)c->label_smoothing,
		.z_loss = (float)c->z_loss,
		.expert_loss = model_has_balance(c->shape.family) ? 0 : (float)c->expert_loss,
		.narrow_gradients = c->gradients == COMPUTE_BF16 && c->compute == COMPUTE_BF16 &&
				    c->accumulate == 1
	};

	switch ((enum recompute)c->recompute) {
	case RECOMPUTE_NONE:
		break;
	case RECOMPUTE_SELECTIVE:
		if (c->recompute_every > 0) {
			o.more = AGAIN_ALL;
			o.more_layers = (c->shape.layers - 1) / (size_t)c->recompute_every + 1;
		} else {
			o.again = AGAIN_CHEAP;
		}
		break;
	case RECOMPUTE_FULL:
		o.again = AGAIN_ALL;
		break;
	case RECOMPUTE_AUTO:
		o.again = c->again;
		o.more = c->more;
		o.more_layers = c->more_layers;
		break;
	}
	return o;
}

struct schedule config_schedule(const struct config *c)
{
	return (struct schedule){ .peak = c->lr,
				  .warmup_steps = c->warmup_steps,
				  .steps = c->schedule_steps > 0 ? c->schedule_steps : c->steps,
				  .decay_ratio = c->decay_ratio,
				  .decay = (enum schedule_decay)c->decay_type,
				  .min_factor = c->min_lr_factor };
}

struct optimizer config_optimizer(const struct config *c)
{
	const struct rng rounding = { .seed = (uint64_t)c->seed, .stream = RNG_ROUND };

	return (struct optimizer){ .beta1 = c->beta1,
				   .beta2 = c->beta2,
				   .eps = c->eps,
				   .weight_decay = c->weight_decay,
				   .decays_all = c->decayed == 1,
				   .max_norm = c->max_norm,
				   .peak_lr = c->lr,
				   .mean_decay = c->ema_decay,
				   .key = rng_key(&rounding),
				   .muon = { .enable = c->optimizer_name == OPTIMIZER_MUON,
					     .nesterov = c->nesterov,
					     .momentum = c->momentum,
					     .steps = (int)c->ns_steps,
					     .rate = (enum muon_rate)c->adjust_lr } };
}

struct lora_rules config_lora(const struct config *c)
{
	return (struct lora_rules){ .rank = (size_t)c->lora_rank,
				    .alpha = c->lora_alpha,
				    .targets = c->lora_targets.items,
				    .target_count = c->lora_targets.count };
}

int config_precision(const struct config *c, struct precision **out, const char **which,
		     struct err *err)
{
	const struct rng rounding = { .seed = (uint64_t)c->seed, .stream = RNG_QUANTIZE };
	bool only_faster = c->only_faster;

	/* torchao's word for it, which decides by sizes */
	for (size_t i = 0; i < c->filter_fqns.count; i++)
		only_faster = only_faster ||
			      strcmp(c->filter_fqns.items[i], "auto_filter_small_kn") == 0;
	const struct precision_wish wish = { .recipe = c->recipe,
					     .layers = c->shape.layers,
					     .first_layers = (size_t)c->first_layers,
					     .last_layers = (size_t)c->last_layers,
					     .filter = c->filter_fqns.items,
					     .filters = c->filter_fqns.count,
					     .rules = c->recipe_rules.items,
					     .rule_count = c->recipe_rules.count,
					     .key = rng_key(&rounding),
					     .only_faster = only_faster };

	return precision_create(out, &wish, which, err);
}
