/* SPDX-License-Identifier: MIT */
/* config.c - the table of keys, and the checks that need more than one of them. */
#include "worker/lbworker/config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/keys.h"
#include "common/mem.h"
#include "common/toml.h"
#include "worker/lbworker/compat.h"
#include "worker/lbworker/init_std.h"
#include "worker/lbworker/rng.h"

#define FIELD(name) offsetof(struct config, name)

enum { MAX_COUNT = 1 << 20 };

/* Every key here works; one that is not here is an error. */
static const struct key keys[] = {
	{ "job", "description", KEY_STRING, FIELD(description), 0, 0, NULL, "\"\"",
	  "free text" },
	{ "job", "dump_folder", KEY_STRING, FIELD(dump_folder), 0, 0, NULL, "\"outputs\"",
	  "where relative folders of this file start" },
	{ "model", "name", KEY_ENUM, FIELD(model_name), 0, 0, "llama|neox|gpt2", "\"llama\"",
	  "family of the model" },
	{ "model", "flavor", KEY_STRING, FIELD(flavor), 0, 0, NULL, "\"debugmodel\"",
	  "its size: debugmodel, 124M, 8B ...; lbworker help lists those of each family" },
	{ "model", "init_std", KEY_STRING, FIELD(init_std_text), 0, 0, NULL, "\"0.02\"",
	  "of the first weights: a number, or a rule of the width h like \"sqrt(2/(5h))\"" },
	{ "u_mup", "enable", KEY_BOOL, FIELD(umup.enable), 0, 0, NULL, "false",
	  "unit-scaled maximal update parametrization: settings hold for all widths; llama only" },
	{ "u_mup", "attention", KEY_REAL, FIELD(umup.attention), 1e-6, 1e6, NULL, "1",
	  "multiplier of attention's scores" },
	{ "u_mup", "activation", KEY_REAL, FIELD(umup.activation), 1e-6, 1e6, NULL, "1",
	  "multiplier within the sigmoid of SwiGLU" },
	{ "u_mup", "residual", KEY_REAL, FIELD(umup.residual), 1e-6, 1e6, NULL, "1",
	  "what all layers add to the stream, against the embedding" },
	{ "u_mup", "residual_attention_ratio", KEY_REAL, FIELD(umup.ratio), 1e-6, 1e6, NULL, "1",
	  "what attention adds, against the feed-forward" },
	{ "u_mup", "loss", KEY_REAL, FIELD(umup.loss), 1e-6, 1e6, NULL, "1",
	  "multiplier of the logits" },
	{ "optimizer", "name", KEY_ENUM, FIELD(optimizer_name), 0, 0, "AdamW", "\"AdamW\"",
	  "the optimizer" },
	{ "optimizer", "lr", KEY_REAL, FIELD(lr), 0, 100, NULL, "8e-4", "peak learning rate" },
	{ "optimizer", "beta1", KEY_REAL, FIELD(beta1), 0, 0.999999, NULL, "0.9",
	  "decay of the first moment" },
	{ "optimizer", "beta2", KEY_REAL, FIELD(beta2), 0, 0.999999, NULL, "0.95",
	  "decay of the second moment" },
	{ "optimizer", "eps", KEY_REAL, FIELD(eps), 1e-30, 1, NULL, "1e-8",
	  "added to the root of the second moment" },
	{ "optimizer", "weight_decay", KEY_REAL, FIELD(weight_decay), 0, 100, NULL, "0.1",
	  "decoupled; of matrices, not of norms" },
	{ "optimizer", "moments", KEY_ENUM, FIELD(moments), 0, 0, "float32|bfloat16", "\"float32\"",
	  "what both moments are kept in; bfloat16 is rounded by chance and halves them" },
	{ "lr_scheduler", "warmup_steps", KEY_INT, FIELD(warmup_steps), 0, 1e12, NULL, "200",
	  "steps from 0 to the peak" },
	{ "lr_scheduler", "total_steps", KEY_INT, FIELD(schedule_steps), -1, 1e12, NULL, "-1",
	  "steps that the schedule spans; -1: training.steps" },
	{ "lr_scheduler", "decay_ratio", KEY_REAL, FIELD(decay_ratio), -1, 1, NULL, "-1",
	  "share of all steps that decay; -1: all after warm-up" },
	{ "lr_scheduler", "decay_type", KEY_ENUM, FIELD(decay_type), 0, 0, "linear|cosine|sqrt",
	  "\"linear\"", "shape of the decay" },
	{ "lr_scheduler", "min_lr_factor", KEY_REAL, FIELD(min_lr_factor), 0, 1, NULL, "0",
	  "of the peak, at the end of the decay" },
	{ "training", "local_batch_size", KEY_INT, FIELD(local_batch_size), 1, MAX_COUNT, NULL,
	  "8", "sequences in one pass" },
	{ "training", "global_batch_size", KEY_INT, FIELD(global_batch_size), -1, MAX_COUNT, NULL,
	  "-1", "sequences in one step, a multiple of local_batch_size; -1: one pass" },
	{ "training", "batch_ramp", KEY_INTS, FIELD(batch_ramp), 1, 1e12, NULL, "[]",
	  "[start, increment, samples]: global batch grows from start over so many samples" },
	{ "training", "seq_len", KEY_INT, FIELD(seq_len), 1, MAX_COUNT, NULL, "256",
	  "tokens in a sequence" },
	{ "training", "steps", KEY_INT, FIELD(steps), 1, 1e12, NULL, "10000",
	  "optimizer steps in all" },
	{ "training", "max_norm", KEY_REAL, FIELD(max_norm), 0, 1e12, NULL, "1.0",
	  "gradient norm is clipped to it; 0: not at all" },
	{ "training", "max_skipped_steps", KEY_INT, FIELD(guard.max_skips), 0, 1e12, NULL, "0",
	  "steps without a finite loss and gradient are left out; more in a row: diverged" },
	{ "training", "spike_factor", KEY_REAL, FIELD(guard.spike_factor), 0, 1e12, NULL, "0",
	  "a gradient norm above so many times the usual is left out, too; 0: none is" },
	{ "training", "seed", KEY_INT, FIELD(seed), 0, 9e15, NULL, "0",
	  "of weights and sample order" },
	{ "training", "mixed_precision_param", KEY_ENUM, FIELD(compute), 0, 0,
	  "float32|bfloat16", "\"float32\"",
	  "what activations are stored and multiplied in; bfloat16 needs a GPU" },
	{ "device", "name", KEY_ENUM, FIELD(device), 0, 0, "auto|cpu|cuda", "\"auto\"",
	  "what computes; auto: the GPU if there is one; cuda: an error if there is none" },
	{ "device", "deterministic", KEY_BOOL, FIELD(deterministic), 0, 0, NULL, "false",
	  "the same bits every time on a GPU too, where that costs time" },
	{ "device", "cache", KEY_STRING, FIELD(device_cache), 0, 0, NULL, "\"cache\"",
	  "folder below dump_folder for what was measured on a GPU; \"\": measured every time" },
	{ "training", "threads", KEY_INT, FIELD(threads), 0, 1024, NULL, "0",
	  "threads on the CPU; 0: one for each core we may run on" },
	{ "training", "dataset_path", KEY_STRING, FIELD(dataset_path), 0, 0, NULL, NULL,
	  "a file of tokens, a folder of *.tokens, or a pattern" },
	{ "training", "dataset_mix", KEY_STRINGS, FIELD(dataset_mix), 0, 0, NULL, NULL,
	  "instead of one path several, as \"WEIGHT PATH\"" },
	{ "training", "dataset_verify", KEY_BOOL, FIELD(dataset_verify), 0, 0, NULL, "true",
	  "read all data at the start: digests, tokens outside the vocabulary" },
	{ "checkpoint", "enable", KEY_BOOL, FIELD(checkpoint_enable), 0, 0, NULL, "true",
	  "false: none is written, and none is looked for; what is trained ends with the process" },
	{ "checkpoint", "folder", KEY_STRING, FIELD(checkpoint_folder), 0, 0, NULL,
	  "\"checkpoints\"", "below dump_folder unless absolute" },
	{ "checkpoint", "async_mode", KEY_ENUM, FIELD(async_mode), 0, 0,
	  "disabled|async|async_with_pinned_mem", "\"async\"",
	  "written while training goes on, from a copy in memory; disabled: training waits" },
	{ "checkpoint", "initial_load_path", KEY_STRING, FIELD(initial_load_path), 0, 0, NULL,
	  "\"\"", "a model of Hugging Face, or a checkpoint, whose weights a new training starts with" },
	{ "checkpoint", "interval", KEY_INT, FIELD(checkpoint_interval), 0, 1e12, NULL, "500",
	  "steps between checkpoints; 0: only at the end" },
	{ "checkpoint", "keep_latest_k", KEY_INT, FIELD(keep_latest_k), 0, 1e12, NULL, "10",
	  "newest ones kept, at least 2; 0: all" },
	{ "checkpoint", "keep_every", KEY_INT, FIELD(keep_every), 0, 1e12, NULL, "0",
	  "those at multiples of it are kept for good; 0: none" },
	{ "activation_checkpoint", "mode", KEY_ENUM, FIELD(recompute), 0, 0,
	  "none|selective|full", "\"none\"",
	  "what backward computes again to save memory; results are the same" },
	{ "activation_checkpoint", "selective_ac_option", KEY_STRING, FIELD(recompute_option), 0, 0,
	  NULL, "\"op\"", "\"op\": norms and activations; \"2\": every second layer, whole" },
	{ "metrics", "log_freq", KEY_INT, FIELD(log_freq), 1, 1e12, NULL, "10",
	  "steps between lines on the terminal (reports go out every step)" },
	{ "metrics", "enable_tensorboard", KEY_BOOL, FIELD(enable_tensorboard), 0, 0, NULL, "false",
	  "event files for TensorBoard" },
	{ "metrics", "save_tb_folder", KEY_STRING, FIELD(save_tb_folder), 0, 0, NULL, "\"tb\"",
	  "where they go, below dump_folder" },
	{ "metrics", "peak_tflops", KEY_REAL, FIELD(peak_tflops), 0, 1e9, NULL, "0",
	  "what MFU is a share of; 0: measured at the start" },
	{ "validation", "enable", KEY_BOOL, FIELD(validation_enable), 0, 0, NULL, "false",
	  "the loss on other data, now and then" },
	{ "validation", "dataset_path", KEY_STRING, FIELD(validation_path), 0, 0, NULL, "\"\"",
	  "that data, as training.dataset_path" },
	{ "validation", "local_batch_size", KEY_INT, FIELD(validation_batch), -1, MAX_COUNT, NULL,
	  "-1", "-1, or that of training" },
	{ "validation", "seq_len", KEY_INT, FIELD(validation_seq_len), -1, MAX_COUNT, NULL, "-1",
	  "-1, or that of training" },
	{ "validation", "freq", KEY_INT, FIELD(validation_freq), 1, 1e12, NULL, "10",
	  "steps between validations" },
	{ "validation", "steps", KEY_INT, FIELD(validation_steps), -1, 1e12, NULL, "-1",
	  "passes in each, always over the same samples; -1: all of the data" },
	{ "profiling", "enable_profiling", KEY_BOOL, FIELD(enable_profiling), 0, 0, NULL, "false",
	  "Chrome traces of single steps" },
	{ "profiling", "profile_freq", KEY_INT, FIELD(profile_freq), 1, 1e12, NULL, "10",
	  "steps between traces" },
	{ "profiling", "save_traces_folder", KEY_STRING, FIELD(save_traces_folder), 0, 0, NULL,
	  "\"profile_traces\"", "where they go, below dump_folder" },
	{ "profiling", "enable_memory_snapshot", KEY_BOOL, FIELD(enable_memory_snapshot), 0, 0, NULL,
	  "false", "a timeline of memory by class, one sample a step" },
	{ "profiling", "save_memory_snapshot_folder", KEY_STRING, FIELD(save_memory_snapshot_folder),
	  0, 0, NULL, "\"memory_snapshot\"", "where it goes, below dump_folder" },
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* Sections of the run spec that lbd and lbrun read from the same file. */
static const char *const foreign_sections[] = { "run", "slurm", "torchrun", "nsys", "restart", "watch",
						       "notify", NULL };

/* What is no mistake, but should be known. A default is not worth a word. */
static void note(const struct toml *toml, const char *key, FILE *notes, const char *text)
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
	if (c->batch_ramp.count == 0)
		return 0;
	const int64_t *ramp = c->batch_ramp.items, local = c->local_batch_size;
	if (c->batch_ramp.count != 3 || ramp[0] % local != 0 || ramp[1] % local != 0 ||
	    ramp[0] >= global || (global - ramp[0]) % ramp[1] != 0)
		return keys_refuse(toml, "training.batch_ramp",
				   "must be [start, increment, samples]: multiples of "
				   "local_batch_size that lead from start to "
				   "global_batch_size", err);
	if (ramp[2] < (global - ramp[0]) / ramp[1])
		return keys_refuse(toml, "training.batch_ramp",
				   "needs at least one sample for each increment", err);
	return 0;
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
				   "around 1", err);
	if (c->lr <= 0)
		return keys_refuse(toml, "optimizer.lr", "must be above 0 with u_mup.enable", err);
	c->shape.tied = false;
	c->shape.umup = c->umup;
	c->shape.umup.context = (double)c->seq_len;
	return 0;
}

static int check_model(struct config *c, const struct toml *toml, struct err *err)
{
	const char *names;

	c->model = model_flavor_find((enum model_family)c->model_name, c->flavor, &names);
	if (!c->model) {
		char *text = xasprintf("there is no \"%s\", allowed: %s", c->flavor, names);
		keys_refuse(toml, "model.flavor", text, err);
		free(text);
		return -1;
	}
	c->shape = c->model->shape;
	if (init_std_parse(c->init_std_text, c->shape.dim, &c->init_std))
		return keys_refuse(toml, "model.init_std", "must be " INIT_STD_FORMS, err);
	return c->umup.enable ? check_umup(c, toml, err) : 0;
}

static int check_validation(const struct config *c, const struct toml *toml, struct err *err)
{
	if (c->validation_path[0] == '\0')
		return keys_refuse(toml, "validation.dataset_path", "is required to validate", err);
	if (c->validation_batch >= 0 && c->validation_batch != c->local_batch_size)
		return keys_refuse(toml, "validation.local_batch_size",
				   "must be that of training, or -1", err);
	if (c->validation_seq_len >= 0 && c->validation_seq_len != c->seq_len)
		return keys_refuse(toml, "validation.seq_len",
				   "must be that of training, or -1", err);
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
		return keys_refuse(toml, "lr_scheduler.total_steps",
				   "must be -1, or at least 1", err);
	int64_t steps = c->schedule_steps > 0 ? c->schedule_steps : c->steps;
	if (c->warmup_steps > steps) {
		note(toml, "lr_scheduler.warmup_steps", notes, "more than all steps: every step warms up");
		c->warmup_steps = steps;
	}
	double room = (double)(steps - c->warmup_steps) / (double)steps;
	if (c->decay_ratio > room && (c->decay_ratio - room) * (double)steps > 0.5) {
		note(toml, "lr_scheduler.decay_ratio", notes, "more than warm-up leaves: all of that decays");
		c->decay_ratio = -1;
	}
	return 0;
}

static int check(struct config *c, const struct toml *toml, FILE *notes, struct err *err)
{
	bool has_path = c->dataset_path && c->dataset_path[0] != '\0';

	if (check_model(c, toml, err))
		return -1;
	if (has_path == (c->dataset_mix.count > 0))
		return keys_refuse(toml, "training.dataset_path",
				   has_path ? "goes without training.dataset_mix"
					    : "is required: a file of tokens, as lbworker prepare makes it",
				   err);
	if (c->validation_enable && check_validation(c, toml, err))
		return -1;
	if (check_schedule(c, toml, notes, err))
		return -1;
	if (check_recompute(c, toml, err) || check_batches(c, toml, err))
		return -1;
	return check_size(c, toml, err);
}

static void work_out_path(struct config *c)
{
	const char *given = getenv("LB_CHECKPOINT_DIR");

	if (given && given[0] != '\0')
		c->checkpoint_path = xstrdup(given);
	else if (c->checkpoint_folder[0] == '/')
		c->checkpoint_path = xstrdup(c->checkpoint_folder);
	else
		c->checkpoint_path = xasprintf("%s/%s", c->dump_folder, c->checkpoint_folder);
}

static void work_out_digest(struct config *c)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return;
	config_print(c, to);
	if (fclose(to) == 0) {
		XXH128_hash_t hash = XXH3_128bits(text, bytes);
		snprintf(c->digest, sizeof(c->digest), "%016llx%016llx",
			 (unsigned long long)hash.high64, (unsigned long long)hash.low64);
	}
	free(text);
}

int config_load(struct config *out, const char *path, char *const *assignments, size_t count,
		struct err *err)
{
	return config_load_as(out, path, assignments, count, false, NULL, err);
}

int config_load_as(struct config *out, const char *path, char *const *assignments, size_t count,
		   bool lenient, FILE *notes, struct err *err)
{
	const struct compat compat = { keys, KEYS, foreign_sections, lenient, notes };
	struct toml toml = { 0 };
	int rc;

	*out = (struct config){ 0 };
	rc = toml_load(&toml, path, err);
	toml.option = "--";
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = toml_set(&toml, assignments[i], err);
	if (rc == 0)
		rc = compat_apply(&compat, &toml, err);
	if (rc == 0)
		rc = keys_unknown(keys, KEYS, &toml, foreign_sections, err);
	if (rc == 0)
		rc = keys_read(keys, KEYS, &toml, out, err);
	if (rc == 0)
		rc = check(out, &toml, notes, err);
	toml_clear(&toml);
	if (rc) {
		config_clear(out);
		return -1;
	}
	work_out_path(out);
	work_out_digest(out);
	return 0;
}

void config_clear(struct config *c)
{
	keys_clear(keys, KEYS, c);
	free(c->checkpoint_path);
	*c = (struct config){ 0 };
}

void config_print(const struct config *c, FILE *to)
{
	keys_print(keys, KEYS, c, to);
}

int64_t config_accumulate(const struct config *c, int64_t samples)
{
	const int64_t *ramp = c->batch_ramp.items;

	if (c->batch_ramp.count == 0 || samples >= ramp[2])
		return c->accumulate;
	int64_t increments = (c->accumulate * c->local_batch_size - ramp[0]) / ramp[1];
	int64_t done = samples / (ramp[2] / increments);
	return (ramp[0] + (done < increments ? done : increments) * ramp[1]) / c->local_batch_size;
}

struct model_options config_model_options(const struct config *c)
{
	struct model_options o = { .batch = (size_t)c->local_batch_size,
				   .seq = (size_t)c->seq_len,
				   .recompute = (enum model_recompute)c->recompute,
				   .compute = (enum compute)c->compute,
				   .bf16_moments = c->moments == COMPUTE_BF16 };

	if (o.recompute == RECOMPUTE_SELECTIVE && c->recompute_every > 0) {
		o.recompute = RECOMPUTE_FULL;
		o.every = (size_t)c->recompute_every;
	}
	return o;
}

struct schedule config_schedule(const struct config *c)
{
	return (struct schedule){ .peak = c->lr, .warmup_steps = c->warmup_steps,
				  .steps = c->schedule_steps > 0 ? c->schedule_steps : c->steps,
				  .decay_ratio = c->decay_ratio,
				  .decay = (enum schedule_decay)c->decay_type,
				  .min_factor = c->min_lr_factor };
}

struct optimizer config_optimizer(const struct config *c)
{
	const struct rng rounding = { .seed = (uint64_t)c->seed, .stream = RNG_ROUND };

	return (struct optimizer){ .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps,
				   .weight_decay = c->weight_decay, .max_norm = c->max_norm,
				   .peak_lr = c->lr, .key = rng_key(&rounding) };
}
