/* SPDX-License-Identifier: MIT */
/* checks.c - what must hold between keys. */
#include "worker/lbworker/config/checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/config/keys.h"
#include "worker/lbworker/config/shape.h"
#include "worker/lbworker/config/stages.h"
#include "worker/lbworker/config/init_std.h"
#include "worker/lbworker/model/slice.h"
#include "worker/lbworker/recipes/rules.h"

void config_note(const struct toml *toml, const char *key, FILE *notes, const char *text)
{
	char where[TOML_WHERE_BYTES];

	if (notes && toml_line(toml, key) != 0)
		fprintf(notes, "%s: %s\n", toml_where(toml, key, where), text);
}

static int check_batches(struct config *c, const struct toml *toml, struct err *err)
{
	int64_t global = c->global_batch_size < 0 ? c->local_batch_size : c->global_batch_size;

	if (global == 0 || global % c->local_batch_size != 0)
		return keys_refuse(toml, "training.global_batch_size",
				   "must be -1 or a multiple of training.local_batch_size", err);
	c->accumulate = global / c->local_batch_size;
	if (c->noise_scale && c->accumulate < 2)
		return keys_refuse(
			toml, "metrics.noise_scale",
			"needs several micro-batches a step: training.global_batch_size of "
			"at least two local_batch_size",
			err);
	if (c->noise_scale && c->reduction_width > 1)
		return keys_refuse(toml, "metrics.noise_scale",
				   "goes without parallelism.reduction_width, which keeps passes "
				   "apart",
				   err);
	if (c->batch_ramp.count == 0)
		return 0;
	const int64_t *ramp = c->batch_ramp.items, local = c->local_batch_size;
	if (c->batch_ramp.count != 3 || ramp[0] % local != 0 || ramp[1] % local != 0 ||
	    ramp[0] >= global || (global - ramp[0]) % ramp[1] != 0)
		return keys_refuse(toml, "training.batch_ramp",
				   "must be [start, increment, samples]: multiples of "
				   "local_batch_size that lead from start to "
				   "global_batch_size",
				   err);
	if (ramp[2] < (global - ramp[0]) / ramp[1])
		return keys_refuse(toml, "training.batch_ramp",
				   "needs at least one sample for each increment", err);
	return 0;
}

static int check_width(const struct config *c, const struct toml *toml, struct err *err)
{
	if ((c->reduction_width & (c->reduction_width - 1)) == 0)
		return 0;
	return keys_refuse(toml, "parallelism.reduction_width", "must be a power of two, or 0",
			   err);
}

static int check_copies(const struct config *c, const struct toml *toml, struct err *err)
{
	if (c->replicate_degree == 0 || c->shard_degree == 0)
		return keys_refuse(toml,
				   c->shard_degree == 0
					   ? "parallelism.data_parallel_shard_degree"
					   : "parallelism.data_parallel_replicate_degree",
				   "must be -1, or at least 1", err);
	if (c->replicate_degree < 0 && c->shard_degree < 0)
		return keys_refuse(toml, "parallelism.data_parallel_replicate_degree",
				   "must be at least 1 while data_parallel_shard_degree is -1",
				   err);
	return 0;
}

/* Moments and weights in bf16 may be rounded by chance, by the place of a parameter: what several
 * ranks have whole must lie at the same place. */
static int check_split(const struct config *c, const struct toml *toml, struct err *err)
{
	const struct model_split split = config_model_options(c).split;
	struct err why = { 0 };

	if (slice_check(&c->shape, &split, &why))
		return keys_refuse(toml, "parallelism.tensor_parallel_degree", why.text, err);
	if (c->tensor_degree > 1 &&
	    (c->moments == MOMENTS_8BIT || c->optimizer_name == OPTIMIZER_MUON))
		return keys_refuse(toml, "parallelism.tensor_parallel_degree",
				   "must be 1 with 8-bit moments and with Muon, which look at more "
				   "than one parameter",
				   err);
	if (c->tensor_degree > 1 && (c->label_smoothing > 0 || c->z_loss > 0))
		return keys_refuse(toml,
				   c->label_smoothing > 0 ? "training.label_smoothing"
							  : "training.z_loss",
				   "needs all logits on one rank: "
				   "parallelism.tensor_parallel_degree = 1",
				   err);
	bool by_chance = c->moments == MOMENTS_BF16 || c->bf16_stochastic_round;
	if (by_chance && c->shape.vocab % (size_t)c->tensor_degree != 0)
		return keys_refuse(
			toml,
			c->bf16_stochastic_round ? "optimizer.bf16_stochastic_round"
						 : "optimizer.moments",
			"rounds by chance: parallelism.tensor_parallel_degree must divide "
			"model.vocab_size",
			err);
	return 0;
}

static int check_stages(const struct config *c, const struct toml *toml, struct err *err)
{
	struct err why = { 0 };
	const char *key;

	return stages_check(c, &key, &why) ? keys_refuse(toml, key, why.text, err) : 0;
}

static int check_recompute(struct config *c, const struct toml *toml, struct err *err)
{
	char *end;

	if (strcmp(c->recompute_option, "op") == 0)
		return 0;
	c->recompute_every = strtol(c->recompute_option, &end, 10);
	if (*end != '\0' || c->recompute_every < 1 || c->recompute_every > MAX_COUNT)
		return keys_refuse(toml, "activation_checkpoint.selective_ac_option",
				   "must be \"op\" or a number of layers, like \"2\"", err);
	return 0;
}

/* An independent decay of the usual 0.1 would leave nothing of the weights within some steps. */
static const double UMUP_DECAY_MAX = 0.02;

static int check_umup(struct config *c, const struct toml *toml, struct err *err)
{
	if (c->shape.family != MODEL_LLAMA)
		return keys_refuse(toml, "u_mup.enable", "needs model.name \"llama\"", err);
	if (c->weight_decay > UMUP_DECAY_MAX)
		return keys_refuse(toml, "optimizer.weight_decay",
				   "is independent of the learning rate with u_mup.enable: "
				   "at most 0.02; 1.2e-4 is usual, with an optimizer.lr "
				   "around 1",
				   err);
	if (c->lr <= 0)
		return keys_refuse(toml, "optimizer.lr", "must be above 0 with u_mup.enable", err);
	c->shape.tied = c->tied = false;
	c->shape.umup = c->umup;
	c->shape.umup.context = (double)c->seq_len;
	return 0;
}

static int check_model(struct config *c, const struct toml *toml, struct err *err)
{
	if (init_std_parse(c->init_std_text, c->shape.dim, &c->init_std))
		return keys_refuse(toml, "model.init_std", "must be " INIT_STD_FORMS, err);
	if (c->document_end >= (int64_t)c->shape.vocab)
		return keys_refuse(toml, "training.document_end",
				   "must be a token, below the vocabulary's size, or -1", err);
	return c->umup.enable ? check_umup(c, toml, err) : 0;
}

static int check_validation(const struct config *c, const struct config_order *o,
			    const struct toml *toml, struct err *err)
{
	if (c->validation_path[0] == '\0' && !o->without_data)
		return keys_refuse(toml, "validation.dataset_path", "is required to validate", err);
	if (c->validation_batch >= 0 && c->validation_batch != c->local_batch_size)
		return keys_refuse(toml, "validation.local_batch_size",
				   "must be that of training, or -1", err);
	if (c->validation_seq_len >= 0 && c->validation_seq_len != c->seq_len)
		return keys_refuse(toml, "validation.seq_len", "must be that of training, or -1",
				   err);
	if (c->validation_steps == 0)
		return keys_refuse(toml, "validation.steps", "must be -1, or at least 1", err);
	return 0;
}

/* The model takes batches of that size: gpt2 has so many positions and no more. */
static int check_size(const struct config *c, const struct toml *toml, struct err *err)
{
	const struct model_options options = config_model_options(c);
	struct err why = { 0 };
	struct model_cost cost;

	if (model_cost(&cost, &c->shape, &options, &why))
		return keys_refuse(toml, "training.seq_len", why.text, err);
	return 0;
}

/* What does not fit into the schedule is shortened, as torchtitan does: a trial of ten steps needs
 * no other warm-up than the training it is for. */
static int check_schedule(struct config *c, const struct toml *toml, FILE *notes, struct err *err)
{
	if (c->decay_ratio < 0 && c->decay_ratio > -1)
		return keys_refuse(toml, "lr_scheduler.decay_ratio", "must be -1, or 0 to 1", err);
	if (c->schedule_steps == 0)
		return keys_refuse(toml, "lr_scheduler.total_steps", "must be -1, or at least 1",
				   err);
	int64_t steps = c->schedule_steps > 0 ? c->schedule_steps : c->steps;
	if (c->warmup_steps > steps) {
		config_note(toml, "lr_scheduler.warmup_steps", notes,
			    "more than all steps: every step warms up");
		c->warmup_steps = steps;
	}
	if (llrint(c->decay_ratio * (double)steps) > steps - c->warmup_steps) {
		config_note(toml, "lr_scheduler.decay_ratio", notes,
			    "more than warm-up leaves: all of that decays");
		c->decay_ratio = -1;
	}
	return 0;
}

static int check_dataset(const struct config *c, const struct toml *toml, struct err *err)
{
	bool has_path = c->dataset_path && c->dataset_path[0] != '\0';

	if (has_path != (c->dataset_mix.count > 0))
		return 0;
	return keys_refuse(toml, "training.dataset_path",
			   has_path ? "goes without training.dataset_mix"
				    : "is required: a file of tokens, as lbworker prepare makes "
				      "it; --dataset PATH names one",
			   err);
}

/* A layer whose matrices are all read as codes, in all products. */
static bool has_sent_layer(const struct config *c, const struct precision *precision)
{
	bool has = false;

	for (size_t l = 0; l < c->shape.layers; l++) {
		bool is_sent = true;
		for (enum module m = MODULE_QKV; m < MODULE_OUTPUT; m++)
			is_sent = is_sent && precision_sent(precision, l, m);
		has = has || is_sent;
	}
	return has;
}

/* Torchtitan's word for it, where that was taken (compat_quantize.c gives on the very object that
 * is its line); there it does nothing with many recipes. */
static const char *gather_of_torchtitan(const struct toml *toml)
{
	static const char *const words[] = {
		"float8.enable_fsdp_float8_all_gather",
		"quantize.linear.float8.enable_fsdp_float8_all_gather",
	};
	const json_t *line = json_object_get(toml->lines, "quantize.fp8_gather");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (line && json_object_get(toml->lines, words[i]) == line)
			return words[i];
	return NULL;
}

static int check_gather(struct config *c, const struct toml *toml, FILE *notes, struct err *err)
{
	static const char goes_with[] =
		"goes with recipes whose weights have one scale of 8 bits for a matrix, of this "
		"step and to nearest (quantize.recipe = \"tensorwise\"), for all matrices of a "
		"layer, without quantize.rules, quantize.only_faster (\"auto_filter_small_kn\") "
		"and u-muP";
	const char *theirs = gather_of_torchtitan(toml);
	char *note;

	if (!theirs)
		return keys_refuse(toml, "quantize.fp8_gather", goes_with, err);
	note = xasprintf("does nothing here: quantize.fp8_gather %s", goes_with);
	config_note(toml, theirs, notes, note);
	free(note);
	c->fp8_gather = false;
	return 0;
}

/* Words that no module's name has leave nothing out, in torchtitan as well. */
static void tell_filters(const struct config *c, const struct toml *toml, FILE *notes)
{
	for (size_t i = 0; i < c->filter_fqns.count; i++) {
		const char *part = c->filter_fqns.items[i];
		bool is_found = strcmp(part, "auto_filter_small_kn") == 0;
		for (size_t l = 0; l < c->shape.layers && !is_found; l++)
			for (int m = 0; m < MODULE_COUNT; m++)
				is_found = is_found || module_is_called((enum module)m, l, part);
		if (is_found)
			continue;
		char *note = xasprintf("\"%.60s\" is part of no module's name: it leaves nothing "
				       "out",
				       part);
		config_note(toml, "quantize.filter_fqns", notes, note);
		free(note);
	}
}

static int check_precision(struct config *c, const struct toml *toml, FILE *notes, struct err *err)
{
	struct precision *precision;
	struct err why = { 0 };
	const char *which;
	char key[32];

	if (config_precision(c, &precision, &which, &why)) {
		snprintf(key, sizeof(key), "quantize.%s", which);
		return keys_refuse(toml, key, why.text, err);
	}
	if (precision)
		tell_filters(c, toml, notes);
	bool can_gather = has_sent_layer(c, precision) && !c->shape.umup.enable;
	precision_destroy(precision);
	return !c->fp8_gather || can_gather ? 0 : check_gather(c, toml, notes, err);
}

/* What experts are not computed with. */
static int check_experts(const struct config *c, const struct toml *toml, struct err *err)
{
	static const char one[] = "must be 1 with experts";
	bool has_recipe = strcmp(c->recipe, "none") != 0 || c->recipe_rules.count > 0;

	if (!model_has_experts(c->shape.family))
		return 0;
	if (c->context_degree > 1)
		return keys_refuse(toml, "parallelism.context_parallel_degree", one, err);
	if (c->pipeline_degree > 1)
		return keys_refuse(toml, "parallelism.pipeline_parallel_degree", one, err);
	if (has_recipe)
		return keys_refuse(toml, "quantize.recipe", "must be \"none\" with experts", err);
	if (c->weights_dtype == COMPUTE_BF16)
		return keys_refuse(toml, "training.dtype", "must be \"float32\" with experts", err);
	if (c->lora_rank > 0)
		return keys_refuse(toml, "lora.rank", "must be 0 with experts", err);
	return 0;
}

const char *few_bits_key(const struct config *c)
{
	if (c->weights_dtype == COMPUTE_BF16)
		return "training.dtype";
	if (c->optimizer_name == OPTIMIZER_MUON)
		return "optimizer.name";
	return c->moments == MOMENTS_8BIT ? "optimizer.moments" : NULL;
}

/* Adapters are trained by the plain way only. */
static int check_lora(const struct config *c, const struct toml *toml, struct err *err)
{
	const struct model_options options = config_model_options(c);
	const struct lora_rules rules = config_lora(c);
	const char *key = few_bits_key(c);
	struct err why = { 0 };
	struct model *plan;

	if (c->initial_load_path[0] == '\0')
		return keys_refuse(toml, "lora.rank",
				   "needs a model to adapt: checkpoint.initial_load_path, or "
				   "--init-from MODEL",
				   err);
	if (!c->initial_load_model_only)
		return keys_refuse(
			toml, "checkpoint.initial_load_model_only",
			"must be true with lora.rank: moments of all weights are of no use", err);
	if (key || c->moments != MOMENTS_FP32 || c->gradients != COMPUTE_FP32)
		return keys_refuse(toml, key ? key : "optimizer.moments",
				   "goes without lora.rank, which is trained by AdamW in float32",
				   err);
	if (c->ema_decay > 0 || c->umup.enable)
		return keys_refuse(toml, c->umup.enable ? "u_mup.enable" : "optimizer.ema_decay",
				   "goes without lora.rank", err);
	if (c->tensor_degree > 1 || c->context_degree > 1 || c->local_ranks > 1)
		return keys_refuse(toml, "lora.rank", "must be 0 with several ranks", err);
	if (c->reduction_width > 1)
		return keys_refuse(toml, "parallelism.reduction_width",
				   "must be 0 or 1 with lora.rank, whose passes add up in place",
				   err);
	if (model_plan(&plan, &c->shape, &options, NULL))
		return 0; /* another check says what is wrong */
	int rc = lora_check(&rules, plan, &why);
	model_destroy(plan);
	return rc ? keys_refuse(toml, "lora.target_modules", why.text, err) : 0;
}

/* Scales are shared by MOMENTS_SHARE elements from the beginning of each layer's matrices on. */
static bool has_even_units(const struct config *c)
{
	const struct model_options options = config_model_options(c);
	struct model *plan;
	bool even = true;

	if (model_plan(&plan, &c->shape, &options, NULL))
		return true; /* another check says what is wrong */
	for (size_t u = 0; u + 1 < plan->units; u++)
		even = even && plan->unit[u].count % MOMENTS_SHARE == 0;
	model_destroy(plan);
	return even;
}

static int check_optimizer(const struct config *c, const struct toml *toml, struct err *err)
{
	const char *key = few_bits_key(c);

	if (c->optimizer_name == OPTIMIZER_ADAMW8BIT && c->moments != MOMENTS_8BIT)
		return keys_refuse(toml, "optimizer.moments",
				   "must be \"8bit\" with optimizer.name = \"AdamW8bit\"", err);
	if (c->bf16_stochastic_round && c->kahan_sum)
		return keys_refuse(toml, "optimizer.kahan_sum",
				   "goes without optimizer.bf16_stochastic_round", err);
	if ((c->bf16_stochastic_round || c->kahan_sum) && c->weights_dtype != COMPUTE_BF16)
		return keys_refuse(toml,
				   c->kahan_sum ? "optimizer.kahan_sum"
						: "optimizer.bf16_stochastic_round",
				   "needs training.dtype = \"bfloat16\"", err);
	if (c->optimizer_name == OPTIMIZER_MUON && (c->umup.enable || c->moments != MOMENTS_FP32))
		return keys_refuse(toml, "optimizer.name",
				   "Muon goes without u_mup.enable, and with optimizer.moments = "
				   "\"float32\"",
				   err);
	if (key && c->device != DEVICE_CPU)
		return keys_refuse(toml, key, "needs device.name = \"cpu\"", err);
	if (c->moments == MOMENTS_8BIT && !has_even_units(c))
		return keys_refuse(toml, "optimizer.moments",
				   "\"8bit\" needs matrices of multiples of 256 elements", err);
	return 0;
}

/* NCCL takes no GPU twice. */
static int check_index(const struct config *c, const struct toml *toml, struct err *err)
{
	if (c->device_index < 0 || c->local_ranks <= 1 || c->device == DEVICE_CPU)
		return 0;
	return keys_refuse(toml, "device.index",
			   "must be -1 with several ranks, each of which takes a GPU of its own: "
			   "CUDA_VISIBLE_DEVICES chooses among them",
			   err);
}

void config_check(struct config *c, const struct config_order *o, const struct toml *toml,
		  struct refusals *r)
{
	struct err err = { 0 };
	bool is_whole = r->count == 0;

	if (c->keep_latest_k == 1)
		config_note(toml, "checkpoint.keep_latest_k", o->notes,
			    "1 counts as 2: the newest may turn out damaged");
	if (!o->without_data)
		refusals_add(r, check_dataset(c, toml, &err), &err);
	if (c->validation_enable)
		refusals_add(r, check_validation(c, o, toml, &err), &err);
	if (is_whole) { /* else a default stands where something else was meant */
		refusals_add(r, check_schedule(c, toml, o->notes, &err), &err);
		refusals_add(r, check_batches(c, toml, &err), &err);
		refusals_add(r, check_width(c, toml, &err), &err);
		refusals_add(r, check_copies(c, toml, &err), &err);
	}
	refusals_add(r, check_index(c, toml, &err), &err);
	refusals_add(r, check_recompute(c, toml, &err), &err);
	if (r->misread_model || shape_work_out(c, toml, r))
		return; /* another model's sizes say nothing */
	refusals_add(r, check_model(c, toml, &err), &err);
	refusals_add(r, check_experts(c, toml, &err), &err);
	refusals_add(r, check_split(c, toml, &err), &err);
	refusals_add(r, check_stages(c, toml, &err), &err);
	if (r->count == 0)
		refusals_add(r, check_size(c, toml, &err), &err);
	refusals_add(r, check_precision(c, toml, o->notes, &err), &err);
	refusals_add(r, check_optimizer(c, toml, &err), &err);
	if (c->lora_rank > 0 && !model_has_experts(c->shape.family))
		refusals_add(r, check_lora(c, toml, &err), &err);
}
