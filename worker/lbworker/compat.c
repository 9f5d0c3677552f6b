/* SPDX-License-Identifier: MIT */
/* compat.c - two tables: other spellings, and keys whose value is what we do anyway. */
#include "worker/lbworker/compat.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

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
};

/* values: as they are written in TOML, one line each; NULL: any, it changes no result. A key that
 * ends with ".*" stands for the rest of its section. */
static const struct {
	const char *key, *values;
} neutral[] = {
	{ "job.print_args", NULL },
	{ "job.print_config", NULL },
	{ "job.use_for_integration_test", NULL },
	{ "job.custom_config_module", "\"\"" },
	{ "model.tokenizer_path", NULL },	/* the data are tokens already */
	{ "model.hf_assets_path", NULL },
	{ "model.norm_type", "\"rmsnorm\"\n\"fused_rmsnorm\"\n\"compiled_rmsnorm\"" },
	{ "model.print_after_conversion", NULL },
	{ "optimizer.implementation", NULL },
	{ "optimizer.fused", NULL },
	{ "optimizer.early_step_in_backward", "false" },
	{ "training.dataset", NULL },		/* dataset_path says it */
	{ "training.dataloader.*", NULL },
	{ "training.enable_loss_parallel", NULL },
	{ "training.compile_rmsnorm", NULL },
	{ "training.gc_freq", NULL },
	{ "training.gc_debug", NULL },
	{ "training.deterministic", NULL },	/* it always is */
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
	{ "parallelism.*", NULL },		/* how to split, where nothing is split */
	{ "checkpoint.interval_type", "\"steps\"" },
	{ "checkpoint.last_save_model_only", NULL },	/* the rest is in files of its own */
	{ "checkpoint.last_save_in_hf", NULL },		/* weights always are */
	{ "checkpoint.export_dtype", "\"float32\"" },
	{ "checkpoint.create_seed_checkpoint", "false" },
	{ "checkpoint.enable_first_step_checkpoint", "false" },
	{ "checkpoint.enable_ft_dataloader_checkpoints", NULL },
	{ "checkpoint.initial_load_model_only", "true" },
	{ "checkpoint.initial_load_in_hf", NULL },	/* the folder shows what it is */
	{ "checkpoint.initial_load_in_hf_quantized", "false" },
	{ "checkpoint.exclude_from_loading", "[]\n\"\"" },
	{ "checkpoint.load_only", "false" },
	{ "checkpoint.load_step", "-1" },
	{ "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", NULL },
	{ "activation_checkpoint.preserve_rng_state", NULL },
	{ "activation_checkpoint.determinism_check", NULL },
	{ "activation_checkpoint.debug", NULL },
	{ "activation_checkpoint.early_stop", NULL },
	{ "compile.enable", NULL },		/* there is nothing left to compile */
	{ "compile.*", NULL },
	/* how float8 is done, once one of the first two keys asks for it */
	{ "model.converters", "[]\n\"\"" },
	{ "float8.enable_float8_linear", "false\n\"\"" },
	{ "float8.enable_fsdp_float8_all_gather", NULL },
	{ "float8.precompute_float8_dynamic_scale_for_fsdp", NULL },
	{ "float8.force_recompute_fp8_weight_in_bwd", NULL },
	{ "float8.filter_fqns", NULL },
	{ "float8.recipe_name", "\"\"" },
	{ "float8.emulate", "false" },
	{ "mx.*", NULL },
	{ "quantize.linear.mx.*", NULL },
	{ "quantize.grouped_mm.*", NULL },
	{ "metrics.enable_wandb", "false" },
	{ "metrics.save_for_all_ranks", NULL },
	{ "metrics.rank_0_only", NULL },
	{ "metrics.disable_color_printing", NULL },
	{ "metrics.enable_color_printing", NULL },
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
	{ "debug.deterministic", NULL },
	{ "debug.deterministic_warn_only", NULL },
	{ "debug.moe_force_load_balance", NULL },
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

/* --- one key ------------------------------------------------------------------------------------ */

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

static void ignore(const struct compat *c, struct toml *toml, const char *path, const char *why)
{
	char where[TOML_WHERE_BYTES];

	if (c->ignored)
		fprintf(c->ignored, "%s: ignored, %s\n", toml_where(toml, path, where), why);
	drop(toml, path);
}

static int refuse(const struct toml *toml, const char *path, const char *text, const char *allowed,
		  struct err *err)
{
	char where[TOML_WHERE_BYTES];

	return err_set(err, ERR_USAGE, "%s: %s is not supported, only %.*s; --lenient goes on without "
		       "it", toml_where(toml, path, where), text, (int)strcspn(allowed, "\n"),
		       allowed);
}

/* A key of the table `neutral`. */
static int take_neutral(const struct compat *c, struct toml *toml, const char *path, int row,
			struct err *err)
{
	const char *values = neutral[row].values;
	char *text = json_dumps(value_at(toml, path), JSON_ENCODE_ANY | JSON_COMPACT);
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

static int take_key(const struct compat *c, struct toml *toml, const char *path, struct err *err)
{
	if (is_ours(c, path) || is_foreign(c, path))
		return 0;
	char *to = new_name(path);
	if (to) {
		rename_key(toml, path, to);
		int rc = value_at(toml, to) ? take_key(c, toml, to, err) : 0;
		free(to);
		return rc;
	}
	int row = neutral_row(path);
	if (row >= 0)
		return take_neutral(c, toml, path, row, err);
	if (c->lenient)
		ignore(c, toml, path, "it is not known");
	return 0;
}

/* --- values ------------------------------------------------------------------------------------- */

/* Families by the names of torchtitan. Llama 2 came in other sizes than Llama 3. */
static void other_family(json_t *model)
{
	const char *name = json_string_value(json_object_get(model, "name"));
	const char *flavor = json_string_value(json_object_get(model, "flavor"));

	if (!name || (strcmp(name, "llama2") != 0 && strcmp(name, "llama3") != 0))
		return;
	if (flavor && strcmp(name, "llama2") == 0 && strcmp(flavor, "debugmodel") != 0) {
		char *ours = xasprintf("2-%s", flavor);
		json_object_set_new(model, "flavor", json_string(ours));
		free(ours);
	}
	json_object_set_new(model, "name", json_string("llama"));
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

int compat_apply(const struct compat *c, struct toml *toml, struct err *err)
{
	struct key_strings paths = { 0 };
	int rc = 0;

	list_paths(toml->root, "", &paths);
	for (size_t i = 0; i < paths.count; i++) {
		if (rc == 0 && value_at(toml, paths.items[i]))
			rc = take_key(c, toml, paths.items[i], err);
		free(paths.items[i]);
	}
	free(paths.items);
	drop_empty(toml->root);
	other_family(json_object_get(toml->root, "model"));
	other_std(json_object_get(toml->root, "model"));
	return rc;
}
