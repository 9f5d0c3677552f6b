/* SPDX-License-Identifier: MIT */
/* training.c - opens data, device, model, moments and reports in order; closes what was opened. */
#include "worker/lbworker/train/training.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "kernels/load.h"
#include "common/base/paths.h"
#include "worker/lbworker/base/device.h"
#include "worker/lbworker/config/stages.h"
#include "worker/lbworker/telemetry/again.h"
#include "worker/lbworker/telemetry/plan_choose.h"
#include "worker/lbworker/checkpoint/resume.h"
#include "worker/lbworker/ranks/arrays.h"

enum { MAX_TOKENIZER_BYTES = 128 << 20 };

static int open_device(struct training *t, struct err *err)
{
	struct config *c = &t->config;
	bool is_asked = c->compute_choice != COMPUTE_CHOICE_AUTO;
	char *cache = c->device_cache[0] == '/'
			      ? xstrdup(c->device_cache)
			      : path_join("%s/%s", c->dump_folder, c->device_cache);
	struct opened opened;
	int rc = device_open(
		&opened,
		&(struct device_order){
			.choice = (enum device_choice)c->device,
			.choice_name = "device.name = \"cuda\"",
			.compute_name = is_asked ? "training.mixed_precision_param" : NULL,
			.notes = stdout,
			.threads = c->threads > 0 ? (int)c->threads : ranks_threads(t->ranks),
			.compute = (enum compute)c->compute,
			.deterministic = c->deterministic,
			.index = (int)c->device_index,
			.cache = c->device_cache[0] ? cache : NULL,
		},
		err);

	free(cache);
	t->backend = opened.backend;
	t->device = opened.device;
	c->compute = opened.compute;
	return rc;
}

/* Read once: each checkpoint gets a copy, whatever becomes of the data meanwhile. */
static int take_tokenizer(struct training *t, struct err *err)
{
	const char *path = data_tokenizer(t->data);

	if (!path)
		return 0;
	t->tokenizer.bytes = file_read(path, MAX_TOKENIZER_BYTES, &t->tokenizer.len, err);
	if (!t->tokenizer.bytes)
		return -1;
	t->tokenizer.name = xstrdup(path_base(path));
	return 0;
}

static int open_data(struct training *t, struct err *err)
{
	const struct config *c = &t->config;
	const struct data_options options = { .path = c->dataset_mix.count ? NULL : c->dataset_path,
					      .mix = c->dataset_mix.items,
					      .mix_count = c->dataset_mix.count,
					      .seq = (size_t)c->seq_len,
					      .vocab = c->shape.vocab,
					      .seed = (uint64_t)c->seed,
					      .verify = c->dataset_verify };
	struct data_options other = options;
	size_t count = (size_t)(c->local_batch_size * c->seq_len);

	other.path = c->validation_path;
	t->data = data_open(&options, err);
	if (!t->data)
		return err_wrap(err, "training.dataset_%s", c->dataset_mix.count ? "mix" : "path");
	t->validation = c->validation_enable ? data_open(&other, err) : NULL;
	if (c->validation_enable && !t->validation)
		return err_wrap(err, "validation.dataset_path");
	if (take_tokenizer(t, err))
		return -1;
	t->tokens = xcalloc(count, sizeof(*t->tokens));
	t->targets = xcalloc(count, sizeof(*t->targets));
	return 0;
}

/* By all of a GPU's memory, not by what is free of it: another launch on such a GPU adds up in the
 * same order. */
static void choose(struct training *t)
{
	struct memory_use use;
	struct plan plan;

	if (t->mesh.width > 0)
		return; /* what each rank keeps is not added up before */
	if (t->backend->memory) {
		t->backend->memory(t->device, &use);
		plan_choose(&t->config, use.total, true);
		return;
	}
	/* a copy for checkpoints takes of the same memory */
	uint64_t room = t->backend->available(t->device);
	if (plan_make(&plan, &t->config, NULL) == 0)
		plan_choose(&t->config, room > plan.checkpoint ? room - plan.checkpoint : 0, false);
}

static bool has_delayed_scaling(const struct training *t)
{
	struct precision *precision = NULL;

	if (config_precision(&t->config, &precision, NULL, NULL))
		return false; /* another check says what is wrong */
	bool has = precision_history_count(precision) > 0;
	precision_destroy(precision);
	return has;
}

/* What this device does not do so far, or not with several ranks. */
static int check_device(const struct training *t, struct err *err)
{
	if (t->config.ema_decay > 0 && !t->backend->average)
		return err_set(
			err, ERR_USAGE,
			"optimizer.ema_decay: must be 0 on this device, or device.name \"cpu\"");
	if (t->config.lora_rank > 0 && (t->ranks->size > 1 || t->backend->arrays ||
					!t->backend->copy || t->config.compute != COMPUTE_FP32))
		return err_set(err, ERR_USAGE,
			       "lora.rank: must be 0 but on one rank, with device.name \"cpu\" and "
			       "training.mixed_precision_param = \"float32\"");
	if (t->config.noise_scale && t->ranks->size > 1)
		return err_set(
			err, ERR_USAGE,
			"metrics.noise_scale: must be false with several ranks, each of which "
			"has a part of the gradient");
	if (t->mesh.tensor > 1 && t->config.compute == COMPUTE_BF16_WIDE)
		return err_set(
			err, ERR_USAGE,
			"training.mixed_precision_param: must be \"float32\" on CPUs that share "
			"a model by parallelism.tensor_parallel_degree");
	if (t->mesh.width > 0 && !t->backend->reserve)
		return err_set(err, ERR_USAGE,
			       "device.name: must be \"cpu\" where ranks share their gradients");
	if (t->mesh.tensor > 1 && !t->backend->loss_merge)
		return err_set(err, ERR_USAGE,
			       "parallelism.tensor_parallel_degree: must be 1 on a GPU so far");
	if (t->mesh.context > 1 && t->backend->arrays)
		return err_set(err, ERR_USAGE,
			       "parallelism.context_parallel_degree: must be 1 on a GPU so far");
	if (t->ranks->size > 1 && has_delayed_scaling(t))
		return err_set(err, ERR_USAGE,
			       "quantize.recipe: scales of past steps are known to one rank only: "
			       "a recipe without delayed scaling, or one rank");
	return 0;
}

static struct sharded_options sharing_of(const struct training *t)
{
	const struct config_mesh *m = &t->mesh;

	return (struct sharded_options){
		.mesh = { t->data_ranks.rank, t->data_ranks.size, m->replicate, m->shard,
			  (enum zero_stage)m->stage, m->context },
		.width = m->width,
		.fast = t->config.reduction == REDUCTION_FAST && t->data_ranks.size > 1,
		.as_codes = t->config.fp8_gather,
	};
}

static int share_model(struct training *t, struct err *err)
{
	const struct sharded_options options = sharing_of(t);

	if (t->mesh.width == 0)
		return 0;
	t->notes = xcalloc((size_t)t->ranks->size, sizeof(*t->notes));
	t->sharded = sharded_create(&t->data_ranks, t->model, &options, err);
	if (!t->sharded)
		return -1;
	sharded_split(t->sharded, t->ranks, &t->tensor_ranks);
	sharded_context(t->sharded, &t->context_ranks);
	sharded_stages(t->sharded, &t->pipe_ranks, &t->plane_ranks);
	return 0;
}

/* Numbers run along those that hold a model together first, and along stages last. */
static void group_ranks(struct training *t)
{
	int rank = t->ranks->rank, degree = t->mesh.tensor, stages = t->mesh.pipeline;
	int each = t->ranks->size / stages, stage = rank / each, slice = rank % degree;

	ranks_group(&t->tensor_ranks, t->ranks, rank - slice, 1, degree);
	ranks_group(&t->data_ranks, t->ranks, stage * each + slice, degree, each / degree);
	int share = t->data_ranks.rank % t->mesh.context;
	ranks_group(&t->context_ranks, t->ranks, rank - share * degree, degree, t->mesh.context);
	ranks_group(&t->pipe_ranks, t->ranks, rank % each, each, stages);
	ranks_group(&t->plane_ranks, t->ranks, slice, degree, t->ranks->size / degree);
	t->config.tensor_rank = slice;
	t->config.context_rank = share;
	t->config.pipeline_rank = stage;
	t->config.pipeline_depth = stages_under_way(&t->config, &t->mesh);
}

static int make_kept(struct training *t)
{
	const struct model *m = t->model;
	const struct optimizer optimizer = config_optimizer(&t->config);
	struct model_unit *own = t->ranks->size > 1 ? xcalloc(m->units, sizeof(*own)) : NULL;

	for (size_t u = 0; own && u < m->units; u++)
		own[u] = sharded_own(t->sharded, u);
	int rc = kept_make(&t->kept, m, own, optimizer.muon.enable);
	free(own);
	return rc;
}

/* First weights, or those of another program, may have more bits than are kept. */
static void round_weights(struct training *t)
{
	const struct model_unit all = { 0, t->model->parameters };

	if (t->model->options.weights == WEIGHTS_FP32)
		return;
	for (size_t u = 0; t->sharded && u < t->model->units; u++)
		optimizer_round_weights(t->model, sharded_own(t->sharded, u));
	if (t->sharded)
		sharded_updated(t->sharded);
	else
		optimizer_round_weights(t->model, all);
}

/* Ranks that take of the same memory: those of a machine, unless each has a GPU. */
static uint64_t sharers_of(const struct training *t)
{
	return t->backend->arrays ? 1 : (uint64_t)t->ranks->beside;
}

static int make_model(struct training *t, const struct plan *plan, struct err *err)
{
	const struct config *c = &t->config;
	struct model_options options = config_model_options(c);
	struct sharded_options sharing = sharing_of(t);

	if (t->ranks->size > 1) {
		options.take = sharded_take;
		options.take_arg = &sharing;
	}
	options.narrow_gradients = options.narrow_gradients && t->mesh.width == 0;
	/* the first rank has the copy, of what all of its machine share */
	uint64_t copy = t->backend == backend_cpu() ? plan->checkpoint / sharers_of(t) : 0;
	t->is_too_large = plan_fits(plan, copy, t->backend->available(t->device) / sharers_of(t),
				    err) != 0;
	if (t->is_too_large || config_precision(c, &t->precision, NULL, err) ||
	    model_create(&t->model, &c->shape, t->backend, t->device, &options, err) ||
	    precision_attach(t->precision, t->backend, t->device, err))
		return -1;
	t->model->precision = t->precision;
	if (share_model(t, err))
		return -1;
	if (t->model->loads)
		t->loads = xcalloc(c->shape.layers * c->shape.experts.count, sizeof(*t->loads));
	t->control = t->backend->alloc(t->device, sizeof(*t->control), "moments");
	if (c->lora_rank > 0) {
		const struct lora_rules rules = config_lora(c);
		t->lora = lora_create(&rules, t->model, err);
		if (!t->lora)
			return -1;
	}
	return make_kept(t) == 0 && t->control
		       ? 0
		       : err_set(err, ERR_IO, "no memory for the optimizer (%zu MiB)",
				 (size_t)plan->moments >> 20);
}

static void say_data(const struct data *data, const char *key, int64_t seq)
{
	size_t count = data ? data_short_files(data) : 0;
	const char *part = data ? data_unfinished(data) : NULL;

	if (count > 0)
		printf("%s: %zu file%s shorter than one sample of %" PRId64
		       " + 1 tokens, and not used: lbworker prepare --join makes one file of several\n",
		       key, count, count == 1 ? " is" : "s are", seq);
	if (part)
		printf("%s: behind %s lbworker tokenize has more to do: the same command again "
		       "makes the rest\n",
		       key, part);
}

static void say_what(const struct training *t)
{
	const struct config *c = &t->config;
	char active[64] = "";

	printf("%s\n", t->backend->describe(t->device));
	if (c->shape.experts.count > 0)
		snprintf(active, sizeof(active), ", %" PRIu64 " of them active in a token",
			 model_active(t->model));
	printf("%s %s: %zu parameters%s; computes in %s; %" PRIu64 " tokens of data, %" PRId64
	       " tokens a step, %" PRId64 " steps\n",
	       model_family_name(c->shape.family), config_flavor(c),
	       model_whole(t->model)->parameters, active,
	       c->compute == COMPUTE_FP32 ? "float32" : "bfloat16", data_tokens(t->data),
	       c->accumulate * c->local_batch_size * c->seq_len, c->steps);
	say_data(t->data, c->dataset_mix.count ? "training.dataset_mix" : "training.dataset_path",
		 c->seq_len);
	say_data(t->validation, "validation.dataset_path", c->seq_len);
	if (t->ranks->size > 1)
		printf("%d ranks over %s: %d copies, each shared by %d (ZeRO-%d); sums of %" PRId64
		       " passes as a tree%s\n",
		       t->ranks->size, t->ranks->table->name, t->mesh.replicate, t->mesh.shard,
		       t->mesh.stage, t->mesh.width,
		       c->reduction == REDUCTION_FAST ? ", of a rank's own in place" : "");
	if (t->sharded && c->fp8_gather)
		printf("weights of %zu of %zu layers go to other ranks as FP8\n",
		       sharded_units_as_codes(t->sharded),
		       model_end_layer(t->model) - model_first_layer(t->model));
	if (t->mesh.tensor > 1)
		printf("each part of the model is cut into slices for %d ranks%s\n", t->mesh.tensor,
		       c->sequence_parallel ? ", the stream by rows" : "");
	if (t->mesh.context > 1)
		printf("each sequence is shared by %d ranks\n", t->mesh.context);
	if (t->mesh.pipeline > 1)
		printf("%d stages, this one of layers %zu to %zu; up to %d passes are under way\n",
		       t->mesh.pipeline, model_first_layer(t->model), model_end_layer(t->model) - 1,
		       c->pipeline_depth);
	again_say(c, stdout);
	if (!c->checkpoint_enable)
		printf("checkpoint.enable = false: what is trained ends with this process\n");
}

static int go_on(struct training *t, struct err *err)
{
	const struct checkpoint_parts parts = {
		.model = t->model,
		.kept = &t->kept,
		.state = &t->state,
		.tokenizer = t->tokenizer.name ? &t->tokenizer : NULL,
		.lora = t->lora,
		.base = t->config.initial_load_path,
		.ranks = t->ranks,
		.sharded = t->sharded,
	};
	char *path;

	if (resume(&parts, &t->config, data_digest(t->data), &path, err))
		return -1;
	round_weights(t);
	t->checkpointer = checkpointer_create(&t->config, &parts, t->report, path, err);
	return t->checkpointer ? 0 : -1;
}

static int open_timeline(struct training *t, const struct plan *plan, struct err *err)
{
	const struct config *c = &t->config;
	const struct backend *gpu = t->backend->memory ? t->backend : NULL;
	struct timeline_classes classes = { .checkpoint_copy = plan->checkpoint };

	if (!c->enable_memory_snapshot)
		return 0;
	if (!gpu) { /* else they are not in this process's memory */
		classes.weights = plan->weights;
		classes.gradients = plan->gradients;
		classes.moments = plan->moments;
		classes.activations = plan->activations;
	}
	char *folder = path_join("%s/%s", c->dump_folder, c->save_memory_snapshot_folder);
	const struct trace_place place = { folder, t->state.step + 1, t->ranks->rank,
					   t->ranks->size };
	t->timeline = timeline_open(&place, &classes, gpu, t->device, err);
	free(folder);
	if (!t->timeline)
		return err_wrap(err, "profiling.save_memory_snapshot_folder");
	timeline_add(t->timeline, "set up before step", t->state.step + 1);
	checkpointer_show(t->checkpointer, t->timeline);
	return 0;
}

static void copy_name(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%.*s", (int)bytes - 1, from);
}

/* All must train the same, by the same program, */
static int compare_orders(struct training *t, struct err *err)
{
	struct ranks_facts facts = { .version = LB_VERSION };

	copy_name(facts.config, sizeof(facts.config), t->config.digest_of_all);
	gethostname(facts.host, sizeof(facts.host) - 1);
	return ranks_compare(t->ranks, &facts, err);
}

/* on the same data. */
static int compare_ranks(struct training *t, struct err *err)
{
	struct ranks_facts facts = { 0 };

	copy_name(facts.data, sizeof(facts.data), data_digest(t->data));
	copy_name(facts.device, sizeof(facts.device), t->backend->name);
	gethostname(facts.host, sizeof(facts.host) - 1);
	return ranks_compare(t->ranks, &facts, err);
}

/* While what is compared is asked for, all find the same: each ends by itself, and the first says
 * it. */
static void all_find_the_same(struct ranks *ranks, bool same)
{
	ranks->all_know = same;
	ranks->is_told = same && ranks->rank != 0;
}

/* Of all ranks: of each its GPU, or the cores of all machines, which some may share. */
static struct meter_peak peak_of(const struct training *t)
{
	int sharing = t->backend->mark ? 1 : t->ranks->sharing;

	return (struct meter_peak){ .tflops = t->config.peak_tflops,
				    .threads = t->config.threads * sharing,
				    .times = (double)t->ranks->size / sharing };
}

int training_open(struct training *t, const struct config *config, struct ranks *ranks,
		  struct err *err)
{
	struct plan plan;

	*t = (struct training){ .config = *config,
				.ranks = ranks,
				/* rank 0 speaks for all */
				.report = report_open(ranks->rank == 0 ? getenv("LB_SOCKET") : NULL,
						      ranks->size) };
	report_setup(t->report, "device");
	if (compare_orders(t, err))
		return -1;
	all_find_the_same(ranks, true);
	if (config_share(&t->config, ranks->size, &t->mesh, err))
		return -1;
	all_find_the_same(ranks, false);
	group_ranks(t);
	if (open_device(t, err))
		return -1;
	report_setup(t->report, "data");
	if (open_data(t, err) || compare_ranks(t, err))
		return -1;
	all_find_the_same(ranks, true);
	if (check_device(t, err))
		return -1;
	all_find_the_same(ranks, false);
	if (arrays_open(t->ranks, t->backend, t->device, err))
		return -1;
	choose(t);
	if (plan_make(&plan, &t->config, err))
		return -1;
	plan_share(&plan, &t->mesh);
	report_setup(t->report, "model");
	if (make_model(t, &plan, err))
		return -1;
	say_what(t);
	report_setup(t->report, "checkpoint");
	if (go_on(t, err) || open_timeline(t, &plan, err))
		return -1;
	if (ranks->rank != 0)
		return 0;
	const struct progress_start start = { t->state.step + 1, peak_of(t), ranks->size };
	t->progress = progress_open(&t->config, t->model, t->report, &start, err);
	return t->progress ? 0 : -1;
}

void training_close(struct training *t)
{
	checkpointer_destroy(t->checkpointer);
	if (t->device) {
		kept_free(&t->kept, t->model);
		lora_destroy(t->lora);
		t->backend->free(t->device, t->control);
		/* with memory recorded programs are forgotten: NCCL waits until they are */
		arrays_close(t->ranks);
		sharded_destroy(t->sharded);
		model_destroy(t->model);
		precision_destroy(t->precision);
		t->backend->close(t->device);
	}
	data_close(t->data);
	data_close(t->validation);
	progress_close(t->progress);
	timeline_close(t->timeline);
	report_close(t->report);
	ranks_close(&t->data_ranks);
	ranks_close(&t->tensor_ranks);
	ranks_close(&t->context_ranks);
	ranks_close(&t->pipe_ranks);
	ranks_close(&t->plane_ranks);
	free(t->tokenizer.name);
	free(t->tokenizer.bytes);
	free(t->notes);
	free(t->loads);
	free(t->tokens);
	free(t->targets);
}
