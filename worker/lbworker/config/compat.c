/* SPDX-License-Identifier: MIT */
/* compat.c - two tables: other spellings, and keys whose value is what we do anyway. */
#include "worker/lbworker/config/compat.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

/* Names that torchtitan gave up, or that say the same in another place. A name that ends with ".*"
 * stands for all that begin so. */
static const struct {
	const char *from, *to;
} renamed[] = {
	{ "training.batch_size", "training.local_batch_size" },
	{ "training.warmup_steps", "lr_scheduler.warmup_steps" },
	{ "lr_scheduler.lr_min", "lr_scheduler.min_lr_factor" },
	{ "debug.seed", "training.seed" },
	{ "training.checkpoint_folder", "checkpoint.folder" },
	{ "training.checkpoint_interval", "checkpoint.interval" },
	{ "training.checkpoint_interval_type", "checkpoint.interval_type" },
	{ "training.data_parallel_degree", "parallelism.data_parallel_shard_degree" },
	{ "training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree" },
	{ "training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree" },
	{ "training.tensor_parallel_degree", "parallelism.tensor_parallel_degree" },
	{ "training.sequence_parallel_degree", "parallelism.tensor_parallel_degree" },
	{ "training.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree" },
	{ "training.fsdp_reshard_after_forward", "parallelism.fsdp_reshard_after_forward" },
	{ "experimental.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree" },
	{ "experimental.context_parallel_degree", "parallelism.context_parallel_degree" },
	{ "experimental.expert_parallel_degree", "parallelism.expert_parallel_degree" },
	{ "experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel" },
	{ "experimental.pipeline_parallel_*", "parallelism.pipeline_parallel_*" },
	{ "training.compile", "compile.enable" },
	{ "training.fp8_linear", "float8.enable_float8_linear" },
	{ "training.enable_fp8_linear", "float8.enable_float8_linear" },
	{ "training.enable_float8_linear", "float8.enable_float8_linear" },
	{ "training.enable_fsdp_fp8_all_gather", "float8.enable_fsdp_float8_all_gather" },
	{ "training.enable_fsdp_float8_all_gather", "float8.enable_fsdp_float8_all_gather" },
	{ "training.precompute_float8_dynamic_scale_for_fsdp",
	  "float8.precompute_float8_dynamic_scale_for_fsdp" },
	{ "quantize.linear.float8.*", "float8.*" },
	{ "checkpoint.enable_checkpoint", "checkpoint.enable" },
	{ "checkpoint.model_weights_only", "checkpoint.last_save_model_only" },
	{ "checkpoint.last_save_model_weights_only", "checkpoint.last_save_model_only" },
	{ "checkpoint.last_save_in_safetensors_format", "checkpoint.last_save_in_hf" },
	{ "checkpoint.initial_load_model_weights_only", "checkpoint.initial_load_model_only" },
	{ "profiling.run_profiler", "profiling.enable_profiling" },
	{ "profiling.profile_every_x_iter", "profiling.profile_freq" },
	{ "validation.enabled", "validation.enable" },
	{ "memory_estimation.enabled", "memory_estimation.enable" },
	/* its files in Python, as it dumps them */
	{ "dump_folder", "job.dump_folder" },
	{ "profiler.*", "profiling.*" },
	{ "validator.*", "validation.*" },
	/* sizes: first torchtitan's, then those of config.json */
	{ "model.hidden_dim", "model.ffn_dim" },
	{ "model.ffn", "model.ffn_dim" },
	{ "model.vocab", "model.vocab_size" },
	{ "model.enable_weight_tying", "model.tie_word_embeddings" },
	{ "model.tie", "model.tie_word_embeddings" },
	{ "model.tied", "model.tie_word_embeddings" },
	{ "model.hidden_size", "model.dim" },
	{ "model.n_embd", "model.dim" },
	{ "model.num_hidden_layers", "model.n_layers" },
	{ "model.n_layer", "model.n_layers" },
	{ "model.num_attention_heads", "model.n_heads" },
	{ "model.n_head", "model.n_heads" },
	{ "model.num_key_value_heads", "model.n_kv_heads" },
	{ "model.intermediate_size", "model.ffn_dim" },
	{ "model.n_inner", "model.ffn_dim" },
	{ "model.rms_norm_eps", "model.norm_eps" },
	{ "model.layer_norm_eps", "model.norm_eps" },
	{ "model.layer_norm_epsilon", "model.norm_eps" },
	{ "model.rotary_emb_base", "model.rope_theta" },
	{ "model.partial_rotary_factor", "model.rotary_pct" },
	{ "model.max_position_embeddings", "model.max_seq_len" },
	{ "model.n_positions", "model.max_seq_len" },
};

/* values: as they are written in TOML, one line each; NULL: any, it changes no result. A key that
 * ends with ".*" stands for the rest of its section. */
static const struct {
	const char *key, *values;
} neutral[] = {
	{ "job.print_args", NULL },
	{ "job.print_config", NULL },
	{ "job.save_config_file", NULL },
	{ "job.config_file", NULL },
	{ "hf_assets_path", NULL },
	{ "tokenizer.*", NULL },
	{ "dataloader.*", NULL },
	{ "loss.*", NULL }, /* how cross-entropy is computed */
	{ "model_converters.converters", "[]" },
	{ "model_converters.*", NULL },
	{ "override.imports", "[]" },
	{ "job.use_for_integration_test", NULL },
	{ "job.custom_config_module", "\"\"" },
	{ "model.tokenizer_path", NULL }, /* the data are tokens already */
	{ "model.hf_assets_path", NULL },
	{ "model.use_flex_attn", NULL }, /* another way to the same sums */
	{ "model.attn_mask_type", "\"causal\"" },
	{ "model.depth_init", NULL },
	{ "model.norm_type", "\"rmsnorm\"\n\"fused_rmsnorm\"\n\"compiled_rmsnorm\"" },
	{ "model.print_after_conversion", NULL },
	{ "optimizer.implementation", NULL },
	{ "optimizer.fused", NULL },
	{ "optimizer.early_step_in_backward", "false" },
	{ "training.dataset", NULL }, /* dataset_path says it */
	{ "training.dataloader.*", NULL },
	{ "training.enable_loss_parallel", NULL },
	{ "training.compile_rmsnorm", NULL },
	{ "training.disable_cuda_graphs", NULL },
	{ "training.gc_freq", NULL },
	{ "training.gc_debug", NULL },
	{ "training.deterministic", NULL },       /* it always is */
	{ "training.enable_selective_ac", NULL }, /* memory; the results are the same */
	{ "training.warmup_pct", "0" },
	{ "training.enable_cpu_offload", "false" },
	{ "training.dtype", "\"float32\"" },
	{ "training.mixed_precision_reduce", "\"float32\"" },
	{ "parallelism.data_parallel_shard_degree", "-1\n1" },
	{ "parallelism.data_parallel_replicate_degree", "1" },
	{ "parallelism.tensor_parallel_degree", "1" },
	{ "parallelism.pipeline_parallel_degree", "1" },
	{ "parallelism.context_parallel_degree", "1" },
	{ "parallelism.expert_parallel_degree", "1" },
	{ "parallelism.enable_async_tensor_parallel", "false" },
	{ "parallelism.*", NULL }, /* how to split, where nothing is split */
	{ "checkpoint.interval_type", "\"steps\"" },
	{ "checkpoint.last_save_model_only", NULL }, /* the rest is in files of its own */
	{ "checkpoint.last_save_in_hf", NULL },      /* weights always are */
	{ "checkpoint.create_seed_checkpoint", "false" },
	{ "checkpoint.enable_first_step_checkpoint", "false" },
	{ "checkpoint.enable_ft_dataloader_checkpoints", NULL },
	{ "checkpoint.initial_load_model_only", "true" },
	{ "checkpoint.initial_load_in_hf", NULL }, /* the folder shows what it is */
	{ "checkpoint.initial_load_in_hf_quantized", "false" },
	{ "checkpoint.exclude_from_loading", "[]\n\"\"" },
	{ "checkpoint.load_only", "false" },
	{ "checkpoint.load_step", "-1" },
	{ "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", NULL },
	{ "activation_checkpoint.preserve_rng_state", NULL },
	{ "activation_checkpoint.determinism_check", NULL },
	{ "activation_checkpoint.force_recompute_mm_shapes_by_fqns", NULL },
	{ "activation_checkpoint.memory_budget", NULL },
	{ "activation_checkpoint.visualize_memory_budget_pareto", NULL },
	{ "activation_checkpoint.debug", NULL },
	{ "activation_checkpoint.early_stop", NULL },
	{ "compile.enable", NULL }, /* there is nothing left to compile */
	{ "compile.*", NULL },
	/* how float8 is done, once one of the first two keys asks for it */
	{ "model.converters", "[]\n\"\"" },
	{ "float8.enable_float8_linear", "false\n\"\"" },
	{ "float8.enable_fsdp_float8_all_gather", NULL },
	{ "float8.precompute_float8_dynamic_scale_for_fsdp", NULL },
	{ "float8.force_recompute_fp8_weight_in_bwd", NULL },
	{ "float8.filter_fqns", NULL },
	{ "float8.moe_fqns", NULL },
	{ "float8.moe_fqns_prototype", NULL },
	{ "float8.recipe_name", "\"\"" },
	{ "float8.emulate", "false" },
	{ "mx.*", NULL },
	{ "quantize.linear.mx.*", NULL },
	{ "quantize.grouped_mm.*", NULL },
	{ "quantize.dense.*", NULL },
	{ "quantize.moe.*", NULL },
	{ "metrics.enable_wandb", "false" },
	{ "metrics.use_for_integration_test", NULL },
	{ "metrics.save_for_all_ranks", NULL },
	{ "metrics.rank_0_only", NULL },
	{ "metrics.disable_color_printing", NULL },
	{ "metrics.enable_color_printing", NULL },
	{ "profiling.profiler_repeat", NULL },
	{ "profiling.profiler_skip_first", NULL },
	{ "profiling.profiler_skip_first_wait", NULL },
	{ "profiling.memory_snapshot_freq", NULL },
	{ "profiling.memory_snapshot_max_entries", NULL },
	{ "profiling.trace_post_processor", NULL },
	{ "profiling.profiler_active", NULL },
	{ "profiling.profiler_warmup", NULL },
	{ "validation.dataset", NULL },
	{ "validation.dataloader.*", NULL },
	{ "comm.mode", "\"default\"" },
	{ "comm.*", NULL },
	{ "memory_estimation.enable", "false" },
	{ "memory_estimation.*", NULL },
	{ "fault_tolerance.enable", "false" },
	{ "fault_tolerance.*", NULL },
	{ "debug.spmd_typechecking", NULL },
	{ "debug.detect_anomaly", NULL },
	{ "debug.batch_invariant", "false" },
	{ "debug.print_config", NULL },
	{ "debug.save_config_file", NULL },
	{ "debug.enable_structured_logging", NULL },
	{ "debug.deterministic", NULL },
	{ "debug.deterministic_warn_only", NULL },
	{ "debug.moe_force_load_balance", NULL },
	{ "experimental.torch_spmd", NULL }, /* how to split, again */
	{ "experimental.custom_import", "\"\"" },
	{ "experimental.custom_args_module", "\"\"" },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* --- paths in the document -------------------------------------------------------------------- */

/* The table that holds the last part of `path`, which *name then points to; NULL. */
static json_t *holder(const struct toml *toml, const char *path, const char **name)
{
	json_t *table = toml->root;
	const char *dot;

	while (table && (dot = strchr(path, '.'))) {
		char *part = xstrndup(path, (size_t)(dot - path));
		table = json_object_get(table, part);
		free(part);
		path = dot + 1;
	}
	*name = path;
	return table;
}

static json_t *value_at(const struct toml *toml, const char *path)
{
	const char *name;
	json_t *table = holder(toml, path, &name);

	return json_object_get(table, name);
}

static void drop(struct toml *toml, const char *path)
{
	const char *name;
	json_t *table = holder(toml, path, &name);

	json_object_del(table, name);
}

/* A section that has lost all its keys must not be taken for an unknown one. */
static void drop_empty(json_t *table)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(table, next, name, value) {
		if (!json_is_object(value))
			continue;
		drop_empty(value);
		if (json_object_size(value) == 0)
			json_object_del(table, name);
	}
}

/* All keys below `table` as paths; the list owns its strings. */
static void list_paths(json_t *table, const char *section, struct key_strings *list)
{
	const char *name;
	json_t *value;

	json_object_foreach(table, name, value) {
		char *path = xasprintf("%s%s%s", section, section[0] ? "." : "", name);
		if (json_is_object(value)) {
			list_paths(value, path, list);
			free(path);
			continue;
		}
		list->items = xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
		list->items[list->count++] = path;
	}
}

/* --- one key ------------------------------------------------------------------------------ */

static bool is_ours(const struct compat *c, const char *path)
{
	for (size_t i = 0; i < c->count; i++) {
		size_t len = strlen(c->keys[i].section);
		if (strncmp(path, c->keys[i].section, len) == 0 && path[len] == '.' &&
		    strcmp(path + len + 1, c->keys[i].name) == 0)
			return true;
	}
	return false;
}

static bool is_foreign(const struct compat *c, const char *path)
{
	size_t len = strcspn(path, ".");

	for (size_t i = 0; c->foreign[i]; i++)
		if (strlen(c->foreign[i]) == len && strncmp(path, c->foreign[i], len) == 0)
			return true;
	return false;
}

static bool matches(const char *pattern, const char *path)
{
	size_t len = strlen(pattern);

	if (len > 1 && pattern[len - 1] == '*')
		return strncmp(pattern, path, len - 1) == 0;
	return strcmp(pattern, path) == 0;
}

static int neutral_row(const char *path)
{
	for (size_t i = 0; i < COUNT(neutral); i++)
		if (matches(neutral[i].key, path))
			return (int)i;
	return -1;
}

/* `text` is one of the lines of `values`. */
static bool is_among(const char *values, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = values; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strncmp(at, text, len) == 0 && (at[len] == '\n' || at[len] == '\0'))
			return true;
	return false;
}

static bool is_in_section(const char *path, const char *section)
{
	size_t len = strlen(section);

	return strncmp(path, section, len) == 0 && path[len] == '.';
}

/* Somebody's section: ours, torchtitan's, or one that it had. */
static bool is_known_section(const struct compat *c, const char *section)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->keys[i].section, section) == 0 ||
		    is_in_section(c->keys[i].section, section))
			return true;
	for (size_t i = 0; i < COUNT(neutral); i++)
		if (is_in_section(neutral[i].key, section))
			return true;
	for (size_t i = 0; i < COUNT(renamed); i++)
		if (is_in_section(renamed[i].from, section))
			return true;
	return false;
}

/* The nearest of all keys that `section` can have; NULL. */
static const char *guess_key(const struct compat *c, const char *section, const char *name)
{
	const char **names = xcalloc(c->count + COUNT(neutral) + COUNT(renamed), sizeof(*names));
	size_t count = 0, skip = strlen(section) + 1;

	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->keys[i].section, section) == 0)
			names[count++] = c->keys[i].name;
	for (size_t i = 0; i < COUNT(neutral); i++)
		if (is_in_section(neutral[i].key, section) && !strchr(neutral[i].key, '*'))
			names[count++] = neutral[i].key + skip;
	for (size_t i = 0; i < COUNT(renamed); i++)
		if (is_in_section(renamed[i].from, section) && !strchr(renamed[i].from, '*'))
			names[count++] = renamed[i].from + skip;
	const char *guess = nearest(name, names, count);
	free(names);
	return guess;
}

/* An unknown key is refused alone, an unknown section at once. */
static int refuse_unknown(const struct compat *c, struct toml *toml, const char *path,
			  struct err *err)
{
	const char *dot = strrchr(path, '.');
	char *section = xstrndup(path, dot ? (size_t)(dot - path) : 0);
	char *first = xstrndup(path, strcspn(path, ".")), *text;

	if (!dot) {
		text = xstrdup("unknown key; it belongs into a section");
		keys_refuse(toml, path, text, err);
		drop(toml, path);
	} else if (!is_known_section(c, section) && !is_known_section(c, first)) {
		const struct toml all = { .file = toml->file,
					  .lines = toml->lines,
					  .root = json_object(),
					  .option = toml->option };
		json_object_set(all.root, first, json_object_get(toml->root, first));
		keys_unknown(c->keys, c->count, &all, c->foreign, err); /* knows the nearest */
		json_decref(all.root);
		text = NULL;
		json_object_del(toml->root, first);
	} else {
		const char *guess = guess_key(c, section, dot + 1);
		text = guess ? xasprintf("unknown key; did you mean \"%s\"?", guess)
			     : xasprintf("unknown key in section [%s]", section);
		keys_refuse(toml, path, text, err);
		drop(toml, path);
	}
	free(text);
	free(first);
	free(section);
	return -1;
}

static void ignore(const struct compat *c, struct toml *toml, const char *path, const char *why)
{
	char where[TOML_WHERE_BYTES];

	if (c->ignored)
		fprintf(c->ignored, "%s: ignored, %s\n", toml_where(toml, path, where), why);
	drop(toml, path);
}

static int refuse(struct toml *toml, const char *path, const char *text, const char *allowed,
		  struct err *err)
{
	char where[TOML_WHERE_BYTES];

	err_set(err, ERR_USAGE, "%s: %s is not supported, only %.*s; --lenient goes on without it",
		toml_where(toml, path, where), text, (int)strcspn(allowed, "\n"), allowed);
	drop(toml, path);
	return -1;
}

/* A key of the table `neutral`. */
static int take_neutral(const struct compat *c, struct toml *toml, const char *path, int row,
			struct err *err)
{
	const char *values = neutral[row].values;
	char *text = json_dumps(value_at(toml, path),
				JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
	int rc = 0;

	if (!values || (text && is_among(values, text)))
		drop(toml, path);
	else if (c->lenient)
		ignore(c, toml, path, "it is not supported");
	else
		rc = refuse(toml, path, text ? text : "this", values, err);
	free(text);
	return rc;
}

/* Moves the value, and its line; where both spellings are there, the new one counts. */
static void rename_key(struct toml *toml, const char *from, const char *to)
{
	json_t *value = json_incref(value_at(toml, from));
	const char *name;
	char *section = xstrndup(to, strcspn(to, "."));

	if (!json_object_get(toml->root, section))
		json_object_set_new(toml->root, section, json_object());
	json_t *table = holder(toml, to, &name);
	if (json_is_object(table) && !json_object_get(table, name)) {
		json_object_set(table, name, value);
		json_object_set(toml->lines, to, json_object_get(toml->lines, from));
		if (!json_object_get(toml->lines, section))
			json_object_set(toml->lines, section, json_object_get(toml->lines, from));
	}
	json_decref(value);
	drop(toml, from);
	free(section);
}

/* What `path` is called now; NULL: the same. The caller frees. */
static char *new_name(const char *path)
{
	for (size_t i = 0; i < COUNT(renamed); i++) {
		const char *from = renamed[i].from, *to = renamed[i].to;
		size_t kept = strcspn(from, "*");
		if (!matches(from, path))
			continue;
		return from[kept] ? xasprintf("%.*s%s", (int)strcspn(to, "*"), to, path + kept)
				  : xstrdup(to);
	}
	return NULL;
}

/* *theirs: set for a key that only a file of torchtitan has. */
static int take_key(const struct compat *c, struct toml *toml, const char *path, bool *theirs,
		    struct err *err)
{
	if (is_ours(c, path) || is_foreign(c, path))
		return 0;
	char *to = new_name(path);
	if (to) {
		rename_key(toml, path, to);
		*theirs = *theirs || strncmp(path, "model.", 6) != 0;
		int rc = value_at(toml, to) ? take_key(c, toml, to, theirs, err) : 0;
		free(to);
		return rc;
	}
	int row = neutral_row(path);
	if (row >= 0) {
		*theirs = true;
		return take_neutral(c, toml, path, row, err);
	}
	if (!c->lenient)
		return refuse_unknown(c, toml, path, err);
	ignore(c, toml, path, "it is not known");
	return 0;
}

/* --- values ------------------------------------------------------------------------------- */

/* Families by the names of torchtitan. Llama 2 came in other sizes than Llama 3. */
static bool other_family(json_t *model)
{
	const char *name = json_string_value(json_object_get(model, "name"));
	const char *flavor = json_string_value(json_object_get(model, "flavor"));

	/* its first files said "llama" for Llama 2 */
	if (name && flavor && strcmp(name, "llama") == 0 &&
	    (strcmp(flavor, "7B") == 0 || strcmp(flavor, "13B") == 0))
		name = "llama2";
	if (!name || (strcmp(name, "llama2") != 0 && strcmp(name, "llama3") != 0))
		return false;
	if (flavor && strcmp(name, "llama2") == 0 && strcmp(flavor, "debugmodel") != 0) {
		char *ours = xasprintf("2-%s", flavor);
		json_object_set_new(model, "flavor", json_string(ours));
		free(ours);
	}
	json_object_set_new(model, "name", json_string("llama"));
	return true;
}

/* A number where a rule may stand as well. */
static void other_std(json_t *model)
{
	const json_t *std = json_object_get(model, "init_std");
	char text[32];

	if (!json_is_number(std))
		return;
	snprintf(text, sizeof(text), "%.15g", json_number_value(std));
	json_object_set_new(model, "init_std", json_string(text));
}

bool compat_apply(const struct compat *c, struct toml *toml, struct refusals *refusals)
{
	struct key_strings paths = { 0 };
	struct err err = { 0 };
	bool theirs = false;

	list_paths(toml->root, "", &paths);
	for (size_t i = 0; i < paths.count; i++) {
		const char *path = paths.items[i];
		int rc = value_at(toml, path) ? take_key(c, toml, path, &theirs, &err) : 0;
		refusals_add(refusals, rc, &err);
		free(paths.items[i]);
	}
	free(paths.items);
	drop_empty(toml->root);
	if (other_family(json_object_get(toml->root, "model")))
		theirs = true;
	other_std(json_object_get(toml->root, "model"));
	return theirs;
}
