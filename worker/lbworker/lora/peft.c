/* SPDX-License-Identifier: MIT */
/* peft.c - adapters as Hugging Face's peft names and describes them, and theirs merged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/base/safetensors.h"
#include "worker/lbworker/lora/lora.h"
#include "worker/lbworker/families/family.h"

enum { MAX_CONFIG_BYTES = 1 << 20, NAME_BYTES = 160 };

static const char PREFIX[] = "base_model.model.";

void lora_name(char *out, size_t bytes, const char *tensor, char which)
{
	size_t len = strlen(tensor) - strlen(".weight");

	snprintf(out, bytes, "%s%.*s.lora_%c.weight", PREFIX, (int)len, tensor, which);
}

/* "q_proj" of "model.layers.0.self_attn.q_proj.weight"; owned by the caller. */
static char *called(const struct model_tensor *t)
{
	size_t end = strlen(t->name) - strlen(".weight"), begin = end;

	while (begin > 0 && t->name[begin - 1] != '.')
		begin--;
	return xstrndup(t->name + begin, end - begin);
}

/* As they were asked for; of "all-linear" the names that they have. */
static json_t *target_list(const struct lora *l)
{
	json_t *list = json_array(), *seen = json_object();
	bool is_all = false;

	for (size_t i = 0; i < l->rules.target_count; i++) {
		is_all = is_all || strcmp(l->rules.targets[i], "all-linear") == 0;
		json_array_append_new(list, json_string(l->rules.targets[i]));
	}
	if (is_all)
		json_array_clear(list);
	for (size_t i = 0; is_all && i < l->pairs; i++) {
		char *name = called(l->pair[i].tensor);
		if (!json_object_get(seen, name))
			json_array_append_new(list, json_string(name));
		js_set_bool(seen, name, true);
		free(name);
	}
	json_decref(seen);
	return list;
}

char *lora_config_json(const struct lora *l, const char *base)
{
	json_t *o = json_object();

	js_set_str(o, "peft_type", "LORA");
	js_set_str(o, "task_type", "CAUSAL_LM");
	js_set_str(o, "base_model_name_or_path", base);
	js_set_int(o, "r", (int64_t)l->rules.rank);
	js_set_real(o, "lora_alpha", l->rules.alpha);
	js_set_real(o, "lora_dropout", 0);
	json_object_set_new(o, "target_modules", target_list(l));
	js_set_str(o, "bias", "none");
	js_set_bool(o, "fan_in_fan_out", l->model->family->in_out);
	js_set_bool(o, "inference_mode", true);
	char *text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	json_decref(o);
	return text;
}

/* --- merging ---------------------------------------------------------------------------------- */

struct lora_merge {
	struct st_file *file;
	double r, factor; /* what its config says */
	/* of the tensor that was asked for last, in fp32 */
	const struct model_tensor *of;
	float *a, *b;
	size_t rank, in, out;
};

static bool is_nothing(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0) ||
	       (json_is_string(v) && strcmp(json_string_value(v), "none") == 0);
}

/* Adapters that begin otherwise (pissa, olora, corda, ...) are of weights that peft has changed
 * first. */
static bool begins_beside(const json_t *o)
{
	static const char *const names[] = { "", "gaussian", "eva", "orthogonal", "mica" };
	const char *name = js_str(o, "init_lora_weights", "");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int read_config(struct lora_merge *g, const char *path, struct err *err)
{
	static const char *const plain[] = {
		"bias",           "use_dora",          "modules_to_save", "rank_pattern",
		"alpha_pattern",  "layer_replication", "use_qalora",      "alora_invocation_tokens",
		"megatron_config"
	};
	json_t *o = js_load(path, MAX_CONFIG_BYTES, err);
	double rank = js_real(o, "r", 0), alpha = js_real(o, "lora_alpha", 0);
	int rc = o ? 0 : -1;

	if (rc == 0 && strcmp(js_str(o, "peft_type", "LORA"), "LORA") != 0)
		rc = err_set(err, ERR_USAGE, "%s: peft_type must be LORA", path);
	if (rc == 0 && !(rank >= 1 && alpha > 0))
		rc = err_set(err, ERR_USAGE, "%s: r and lora_alpha must be above 0", path);
	for (size_t i = 0; rc == 0 && i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!is_nothing(json_object_get(o, plain[i])))
			rc = err_set(err, ERR_USAGE, "%s: %s is not supported: plain LoRA only",
				     path, plain[i]);
	if (rc == 0 && !begins_beside(o))
		rc = err_set(
			err, ERR_USAGE,
			"%s: init_lora_weights = \"%.40s\" changes the model that it adapts: save "
			"it as a plain one (peft: path_initial_model_for_weight_conversion), or "
			"merge it with peft",
			path, js_str(o, "init_lora_weights", ""));
	g->r = rank;
	g->factor = js_bool(o, "use_rslora", false) ? alpha / sqrt(rank) : alpha / rank;
	json_decref(o);
	return rc;
}

struct lora_merge *lora_merge_open(const char *folder, struct err *err)
{
	struct lora_merge *g = xcalloc(1, sizeof(*g));
	char *config = path_join("%s/adapter_config.json", folder),
	     *weights = path_join("%s/adapter_model.safetensors", folder);

	if (read_config(g, config, err) == 0)
		g->file = st_open(weights, err);
	free(config);
	free(weights);
	if (g->file)
		return g;
	lora_merge_close(g);
	return NULL;
}

void lora_merge_close(struct lora_merge *g)
{
	if (!g)
		return;
	st_close(g->file);
	free(g->a);
	free(g->b);
	free(g);
}

/* Both matrices of a tensor; false: it has none, or not of such sides. */
static bool find_pair(const struct lora_merge *g, const struct model *m,
		      const struct model_tensor *t, const struct st_tensor *pair[2])
{
	size_t in = m->family->in_out ? t->rows : t->columns,
	       out = m->family->in_out ? t->columns : t->rows;
	char name[NAME_BYTES];

	if (t->columns == 0 || strlen(t->name) <= strlen(".weight"))
		return false;
	for (int k = 0; k < 2; k++) {
		lora_name(name, sizeof(name), t->name, k == 0 ? 'A' : 'B');
		pair[k] = st_named(g->file, name);
		if (!pair[k] || pair[k]->dimensions != 2 || !st_is_float(pair[k]))
			return false;
	}
	return pair[0]->shape[1] == in && pair[1]->shape[0] == out &&
	       pair[0]->shape[0] == pair[1]->shape[1] && (double)pair[0]->shape[0] == g->r;
}

int lora_merge_check(struct lora_merge *g, const struct model *m, struct err *err)
{
	const struct st_tensor *pair[2];
	size_t found = 0;

	for (size_t i = 0; i < m->tensors; i++)
		found += find_pair(g, m, &m->tensor[i], pair) ? 2 : 0;
	if (found == st_count(g->file) && found > 0)
		return 0;
	return err_set(err, ERR_USAGE,
		       "adapter_model.safetensors: %zu of its %zu tensors are adapters of rank %g "
		       "of matrices of this model",
		       found, st_count(g->file), g->r);
}

/* A and B of that tensor, unless they are here already. */
static void take(struct lora_merge *g, const struct model *m, const struct model_tensor *t)
{
	const struct st_tensor *pair[2];

	if (g->of == t)
		return;
	g->of = t;
	g->rank = 0;
	if (!find_pair(g, m, t, pair))
		return;
	g->rank = (size_t)pair[0]->shape[0];
	g->in = (size_t)pair[0]->shape[1];
	g->out = (size_t)pair[1]->shape[0];
	g->a = xrealloc(g->a, g->rank * g->in * sizeof(float));
	g->b = xrealloc(g->b, g->rank * g->out * sizeof(float));
	st_widen(g->a, pair[0], 0, g->rank * g->in);
	st_widen(g->b, pair[1], 0, g->rank * g->out);
}

void lora_merge_row(struct lora_merge *g, const struct model *m, const struct model_tensor *t,
		    size_t row, float *to)
{
	take(g, m, t);
	for (size_t column = 0; g->rank > 0 && column < t->columns; column++) {
		size_t out = m->family->in_out ? column : row,
		       in = m->family->in_out ? row : column;
		double sum = 0;
		for (size_t k = 0; k < g->rank; k++)
			sum += (double)g->b[out * g->rank + k] * (double)g->a[k * g->in + in];
		to[column] = (float)((double)to[column] + g->factor * sum);
	}
}
