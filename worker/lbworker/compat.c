/* SPDX-License-Identifier: MIT */
/* compat.c - two tables: other spellings, and keys whose value is what we do anyway. */
#include "worker/lbworker/compat.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Names that torchtitan gave up, or that say the same in another place. */
static const struct {
	const char *from, *to;
} renamed[] = {
	{ "training.batch_size", "training.local_batch_size" },
	{ "training.warmup_steps", "lr_scheduler.warmup_steps" },
	{ "lr_scheduler.lr_min", "lr_scheduler.min_lr_factor" },
	{ "debug.seed", "training.seed" },
	{ "training.data_parallel_degree", "parallelism.data_parallel_shard_degree" },
	{ "training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree" },
	{ "training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree" },
	{ "training.tensor_parallel_degree", "parallelism.tensor_parallel_degree" },
	{ "experimental.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree" },
	{ "experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree" },
	{ "experimental.context_parallel_degree", "parallelism.context_parallel_degree" },
	{ "experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel" },
	{ "training.compile", "compile.enable" },
	{ "training.fp8_linear", "float8.enable_float8_linear" },
	{ "training.enable_float8_linear", "float8.enable_float8_linear" },
	{ "checkpoint.enable_checkpoint", "checkpoint.enable" },
	{ "checkpoint.model_weights_only", "checkpoint.last_save_model_only" },
	{ "checkpoint.last_save_model_weights_only", "checkpoint.last_save_model_only" },
};

/* values: as they are written in TOML, one line each; NULL: any, it changes no result. A key that
 * ends with ".*" stands for the rest of its section. */
static const struct {
	const char *key, *values;
} neutral[] = {
	{ "job.print_args", NULL },
	{ "job.print_config", NULL },
	{ "job.use_for_integration_test", NULL },
	{ "model.tokenizer_path", NULL },	/* the data are tokens already */
	{ "model.hf_assets_path", NULL },
	{ "model.norm_type", "\"rmsnorm\"\n\"fused_rmsnorm\"" },
	{ "model.converters", "[]" },
	{ "model.print_after_conversion", NULL },
	{ "optimizer.implementation", NULL },
	{ "optimizer.fused", NULL },
	{ "optimizer.early_step_in_backward", "false" },
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
	{ "checkpoint.enable", "true" },
	{ "checkpoint.last_save_model_only", "false" },
	{ "checkpoint.last_save_in_hf", "false" },
	{ "checkpoint.export_dtype", "\"float32\"" },
	{ "checkpoint.create_seed_checkpoint", "false" },
	{ "checkpoint.enable_first_step_checkpoint", "false" },
	{ "checkpoint.exclude_from_loading", "[]" },
	{ "checkpoint.load_step", "-1" },
	{ "activation_checkpoint.early_stop", NULL },
	{ "compile.enable", NULL },		/* there is nothing left to compile */
	{ "compile.*", NULL },
	{ "float8.enable_float8_linear", "false" },
	{ "float8.enable_fsdp_float8_all_gather", "false" },
	{ "float8.precompute_float8_dynamic_scale_for_fsdp", "false" },
	{ "float8.force_recompute_fp8_weight_in_bwd", "false" },
	{ "float8.filter_fqns", NULL },
	{ "metrics.enable_wandb", "false" },
	{ "metrics.save_for_all_ranks", NULL },
	{ "metrics.rank_0_only", NULL },
	{ "metrics.disable_color_printing", NULL },
	{ "metrics.enable_color_printing", NULL },
	{ "profiling.profiler_active", NULL },
	{ "profiling.profiler_warmup", NULL },
	{ "validation.enabled", "false" },
	{ "validation.dataset", NULL },		/* dataset_path says it */
	{ "comm.*", NULL },
	{ "memory_estimation.enabled", "false" },
	{ "memory_estimation.*", NULL },
	{ "fault_tolerance.enable", "false" },
	{ "fault_tolerance.*", NULL },
	{ "debug.deterministic", NULL },
	{ "debug.deterministic_warn_only", NULL },
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
	int line = toml_line(toml, path);

	if (c->ignored && line > 0)
		fprintf(c->ignored, "%s:%d: %s: ignored, %s\n", toml->file, line, path, why);
	else if (c->ignored)
		fprintf(c->ignored, "%s: %s: ignored, %s\n", toml->file, path, why);
	drop(toml, path);
}

static int refuse(const struct toml *toml, const char *path, const char *text, const char *allowed,
		  struct err *err)
{
	int line = toml_line(toml, path);
	char where[32] = "";

	if (line > 0)
		snprintf(where, sizeof(where), ":%d", line);
	return err_set(err, ERR_USAGE, "%s%s: %s: %s is not supported, only %.*s", toml->file, where,
		       path, text, (int)strcspn(allowed, "\n"), allowed);
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
	}
	json_decref(value);
	drop(toml, from);
	free(section);
}

static int take_key(const struct compat *c, struct toml *toml, const char *path, struct err *err)
{
	if (is_ours(c, path) || is_foreign(c, path))
		return 0;
	for (size_t i = 0; i < COUNT(renamed); i++)
		if (strcmp(renamed[i].from, path) == 0) {
			rename_key(toml, path, renamed[i].to);
			return value_at(toml, renamed[i].to)
				       ? take_key(c, toml, renamed[i].to, err) : 0;
		}
	int row = neutral_row(path);
	if (row >= 0)
		return take_neutral(c, toml, path, row, err);
	if (c->lenient)
		ignore(c, toml, path, "it is not known");
	return 0;
}

/* --- values ------------------------------------------------------------------------------------- */

/* Families by the names of torchtitan, and a number where a rule may stand as well. */
static void other_values(struct toml *toml)
{
	const char *name = json_string_value(value_at(toml, "model.name"));
	const json_t *std = value_at(toml, "model.init_std");
	json_t *model = json_object_get(toml->root, "model");
	char text[32];

	if (name && (strcmp(name, "llama3") == 0 || strcmp(name, "llama2") == 0))
		json_object_set_new(model, "name", json_string("llama"));
	if (json_is_number(std)) {
		snprintf(text, sizeof(text), "%.15g", json_number_value(std));
		json_object_set_new(model, "init_std", json_string(text));
	}
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
	other_values(toml);
	return rc;
}
