/* SPDX-License-Identifier: MIT */
/* foreign_config.c - a Llama's shape as Meta's params.json says it (llama-models: ModelArgs),
 * LitGPT's model_config.yaml (litgpt/config.py), and transformers' config.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/families/hf_config.h"
#include "worker/lbworker/torch/foreign_parts.h"

enum { MAX_CONFIG_BYTES = 1 << 20, FILE_MODE = 0644, META_POSITIONS = 8192 };

/* A head that is the embedding, or its copy. */
static bool is_tied(const struct tensors *tensors, const char *embedding, const char *head)
{
	return tensors_rows(tensors, head, 0) == 0 || tensors_same(tensors, embedding, head);
}

/* The head is called one or the other. */
static bool is_meta_tied(const struct tensors *tensors)
{
	return is_tied(tensors, "tok_embeddings.weight", "output.weight") &&
	       is_tied(tensors, "tok_embeddings.weight", "lm_head.weight");
}

/* --- Meta ----------------------------------------------------------------------------------- */

int meta_read(struct model_shape *s, size_t *positions, const char *folder,
	      const struct tensors *tensors, struct err *err)
{
	char *path = path_join("%s/params.json", folder);
	json_t *o = js_load(path, MAX_CONFIG_BYTES, err);
	int64_t dim = js_int(o, "dim", 0), layers = js_int(o, "n_layers", 0),
		heads = js_int(o, "n_heads", 0), kv_heads = js_int(o, "n_kv_heads", heads);
	int rc = o ? 0 : -1;

	if (rc == 0 && (dim <= 0 || layers <= 0 || heads <= 0 || kv_heads <= 0))
		rc = err_set(err, ERR_USAGE,
			     "%s: dim, n_layers, n_heads and n_kv_heads must be above 0", path);
	if (rc == 0 && json_object_get(o, "moe_args"))
		rc = err_set(err, ERR_USAGE, "%s: moe_args is not supported", path);
	*s = (struct model_shape){
		.family = MODEL_LLAMA,
		.vocab = tensors_rows(tensors, "tok_embeddings.weight", (size_t)dim),
		.dim = (size_t)dim,
		.layers = (size_t)layers,
		.heads = (size_t)heads,
		.kv_heads = (size_t)kv_heads,
		.ffn = tensors_rows(tensors, "layers.0.feed_forward.w1.weight", (size_t)dim),
		.tied = is_meta_tied(tensors),
		.norm_eps = (float)js_real(o, "norm_eps", 1e-5),
		.rope_theta = js_real(o, "rope_theta", 10000)
	};
	if (js_bool(o, "use_scaled_rope", false))
		s->scaling = (struct rope_scaling){
			.factor = js_real(o, "rope_scaling_factor", 8),
			.low = 1,
			.high = js_real(o, "rope_high_freq_factor", 4),
			.original = META_POSITIONS,
		};
	*positions = s->scaling.factor > 0 ? (size_t)(s->scaling.factor * META_POSITIONS)
					   : (size_t)js_int(o, "max_seq_len", META_POSITIONS);
	json_decref(o);
	free(path);
	return rc;
}

/* Meta works the width of the feed-forward out: 8/3 of dim, times a factor, up to a multiple. */
static void put_ffn(json_t *o, const struct model_shape *s)
{
	size_t multiple = 1, wide = 8 * s->dim / 3;

	while (multiple < 4096 && s->ffn % (2 * multiple) == 0)
		multiple *= 2;
	js_set_int(o, "multiple_of", (int64_t)multiple);
	js_set_real(o, "ffn_dim_multiplier",
		    ((double)s->ffn - (double)(multiple - 1) / 2 + 0.25) / (double)wide);
}

static int write_json(json_t *o, const char *path, struct err *err)
{
	char *text = json_dumps(o, JSON_INDENT(2));
	int rc = file_write_atomic(path, text, strlen(text), FILE_MODE, err);

	free(text);
	json_decref(o);
	return rc;
}

int meta_write(const struct model_shape *s, size_t positions, const char *dtype, const char *path,
	       struct err *err)
{
	(void)dtype;
	if (s->head_dim)
		return err_set(err, ERR_USAGE, "Meta's files know no head_dim of its own (%zu)",
			       s->head_dim);
	if (s->scaling.factor > 0 && (s->scaling.low != 1 || s->scaling.original != META_POSITIONS))
		return err_set(err, ERR_USAGE,
			       "Meta's files know rope scaling with low_freq_factor 1 and "
			       "original_max_position_embeddings %d only, not %g and %g: --to "
			       "huggingface, torch or litgpt",
			       META_POSITIONS, s->scaling.low, s->scaling.original);
	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:I}", "dim",
			      (json_int_t)s->dim, "n_layers", (json_int_t)s->layers, "n_heads",
			      (json_int_t)s->heads, "n_kv_heads", (json_int_t)s->kv_heads,
			      "vocab_size", (json_int_t)s->vocab, "norm_eps", (double)s->norm_eps,
			      "rope_theta", s->rope_theta, "use_scaled_rope", s->scaling.factor > 0,
			      "max_seq_len", (json_int_t)positions);
	put_ffn(o, s);
	if (s->scaling.factor > 0) {
		js_set_real(o, "rope_scaling_factor", s->scaling.factor);
		js_set_real(o, "rope_high_freq_factor", s->scaling.high);
	}
	return write_json(o, path, err);
}

static bool has_layer(const struct tensors *tensors, size_t layer)
{
	char name[64];

	snprintf(name, sizeof(name), "layers.%zu.attention_norm.weight", layer);
	return tensors_rows(tensors, name, 0) > 0;
}

/* A checkpoint of torchtitan does not say its shape; what we write has params.json beside it. */
int dcp_shape(struct model_shape *s, size_t *positions, const char *folder,
	      const struct tensors *tensors, struct err *err)
{
	if (folder_holds(folder, "params.json") && s->dim == 0)
		return meta_read(s, positions, folder, tensors, err);
	if (s->dim == 0)
		return err_set(
			err, ERR_USAGE,
			"%s: a checkpoint does not say the model's shape: give --flavor NAME (of "
			"train: model.flavor)",
			folder);
	if (has_layer(tensors, s->layers))
		return err_set(err, ERR_USAGE,
			       "%s: has more than the %zu layers of the flavor or model.n_layers",
			       folder, s->layers);
	s->tied = is_meta_tied(tensors);
	*positions = s->scaling.factor > 0 ? (size_t)(s->scaling.factor * s->scaling.original)
					   : META_POSITIONS;
	return 0;
}

/* --- LitGPT --------------------------------------------------------------------------------- */

/* Of a document of "key: value" lines: the value's text, up to the line's end; NULL: none. Keys in
 * deeper lines are found, too: no two are called the same. */
static char *yaml_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, "\n ");
		if (strncmp(line, key, len) != 0 || line[len] != ':')
			continue;
		const char *value = line + len + 1 + strspn(line + len + 1, " '\"");
		return xstrndup(value, strcspn(value, "\n'\" #"));
	}
	return NULL;
}

static double yaml_number(const char *text, const char *key, double fallback)
{
	char *value = yaml_value(text, key), *end;
	double number = value ? strtod(value, &end) : fallback;

	if (value && (end == value || *end || !(number >= 0) || number > 1e15))
		number = fallback;
	free(value);
	return number;
}

/* What our Llama always does. */
static int check_litgpt(const char *text, const char *path, struct err *err)
{
	static const struct {
		const char *key, *value;
	} wanted[] = {
		{ "norm_class_name", "RMSNorm" },
		{ "mlp_class_name", "LLaMAMLP" },
		{ "bias", "false" },
		{ "attn_bias", "false" },
		{ "parallel_residual", "false" },
		{ "rotary_percentage", "1.0" },
		{ "rope_condense_ratio", "1" },
		{ "rope_local_base_freq", "null" },
		{ "lm_head_bias", "false" },
		{ "scale_embeddings", "false" },
		{ "attention_scores_scalar", "null" },
		{ "norm_qk", "false" },
		{ "post_attention_norm", "false" },
		{ "post_mlp_norm", "false" },
		{ "sliding_window_size", "null" },
		{ "final_logit_softcapping", "null" },
		{ "attention_logit_softcapping", "null" },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		char *value = yaml_value(text, wanted[i].key);
		bool fits = !value || strcmp(value, wanted[i].value) == 0;
		if (!fits)
			err_set(err, ERR_USAGE, "%s: %s must be %s, it is %.40s", path,
				wanted[i].key, wanted[i].value, value);
		free(value);
		if (!fits)
			return -1;
	}
	return 0;
}

static void litgpt_shape(struct model_shape *s, size_t *positions, const char *text,
			 const struct tensors *tensors)
{
	size_t heads = (size_t)yaml_number(text, "n_head", 0);
	size_t dim = (size_t)yaml_number(text, "n_embd", 0);
	size_t head_dim = (size_t)yaml_number(text, "head_size", 0);

	*s = (struct model_shape){
		.family = MODEL_LLAMA,
		.vocab = tensors_rows(tensors, "transformer.wte.weight", 0),
		.dim = dim,
		.layers = (size_t)yaml_number(text, "n_layer", 0),
		.heads = heads,
		.kv_heads = (size_t)yaml_number(text, "n_query_groups", (double)heads),
		.ffn = tensors_rows(tensors, "transformer.h.0.mlp.fc_1.weight", 0),
		.tied = is_tied(tensors, "transformer.wte.weight", "lm_head.weight"),
		.norm_eps = (float)yaml_number(text, "norm_eps", 1e-5),
		.rope_theta = yaml_number(text, "rope_base", 10000),
		.head_dim = head_dim * heads == dim ? 0 : head_dim,
		.scaling = { .factor = yaml_number(text, "factor", 0),
			     .low = yaml_number(text, "low_freq_factor", 0),
			     .high = yaml_number(text, "high_freq_factor", 0),
			     .original = yaml_number(text, "original_max_seq_len", 0) },
	};
	*positions = (size_t)yaml_number(text, "block_size", 4096);
}

int litgpt_read(struct model_shape *s, size_t *positions, const char *folder,
		const struct tensors *tensors, struct err *err)
{
	char *path = path_join("%s/model_config.yaml", folder);
	size_t bytes;
	char *text = file_read(path, MAX_CONFIG_BYTES, &bytes, err);
	int rc = text ? check_litgpt(text, path, err) : -1;

	if (rc == 0)
		litgpt_shape(s, positions, text, tensors);
	if (rc == 0 && (s->dim == 0 || s->layers == 0 || s->heads == 0))
		rc = err_set(err, ERR_USAGE, "%s: n_embd, n_layer and n_head must be above 0",
			     path);
	if (rc == 0 && tensors_rows(tensors, "transformer.h.0.attn.attn.weight", 0))
		rc = err_set(err, ERR_USAGE,
			     "%s: attn.attn.weight is of LitGPT before 0.5: convert it there first",
			     folder);
	free(text);
	free(path);
	return rc;
}

int litgpt_write(const struct model_shape *s, size_t positions, const char *dtype, const char *path,
		 struct err *err)
{
	(void)dtype;
	size_t head_dim = s->head_dim ? s->head_dim : s->dim / s->heads;
	struct buf b;

	buf_init(&b, MAX_CONFIG_BYTES);
	(void)buf_addf(&b,
		       "name: llama\nblock_size: %zu\nvocab_size: %zu\npadded_vocab_size: %zu\n"
		       "n_layer: %zu\nn_head: %zu\nhead_size: %zu\nn_embd: %zu\n"
		       "n_query_groups: %zu\nintermediate_size: %zu\nnorm_eps: %.9g\n"
		       "rope_base: %.17g\nrotary_percentage: 1.0\nparallel_residual: false\n"
		       "bias: false\nnorm_class_name: RMSNorm\nmlp_class_name: LLaMAMLP\n",
		       positions, s->vocab, s->vocab, s->layers, s->heads, head_dim, s->dim,
		       s->kv_heads, s->ffn, (double)s->norm_eps, s->rope_theta);
	if (s->scaling.factor > 0)
		(void)buf_addf(&b,
			       "rope_adjustments:\n  factor: %.17g\n  low_freq_factor: %.17g\n"
			       "  high_freq_factor: %.17g\n  original_max_seq_len: %.0f\n",
			       s->scaling.factor, s->scaling.low, s->scaling.high,
			       s->scaling.original);
	int rc = file_write_atomic(path, b.data, b.len, FILE_MODE, err);
	buf_fini(&b);
	return rc;
}

/* --- transformers --------------------------------------------------------------------------- */

int hf_read(struct model_shape *s, size_t *positions, const char *folder,
	    const struct tensors *tensors, struct err *err)
{
	(void)tensors;
	return hf_config_read(s, positions, folder, err);
}

int hf_write(const struct model_shape *s, size_t positions, const char *dtype, const char *path,
	     struct err *err)
{
	return write_json(hf_config_json(s, positions, dtype), path, err);
}
