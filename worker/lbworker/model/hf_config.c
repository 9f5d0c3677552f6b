/* SPDX-License-Identifier: MIT */
/* hf_config.c - config.json both ways, by one table per family.
 * Names and defaults are those of transformers' LlamaConfig, GPTNeoXConfig and GPT2Config. */
#include "worker/lbworker/model/hf_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/paths.h"

enum { MAX_CONFIG_BYTES = 1 << 20 };

#define FIELD(name) offsetof(struct model_shape, name)

enum hf_type { HF_SIZE, HF_FLOAT, HF_DOUBLE, HF_BOOL };

/* one field of the shape */
struct hf_key {
	const char *name;
	enum hf_type type;
	size_t offset;
	double fallback; /* what an absent key means; NAN: it is required */
};

/* what our model always does: text, a flag, or nothing at all */
struct hf_constant {
	const char *name, *text;
	bool flag, none; /* an absent key means the same */
};

struct hf_family {
	const char *model_type, *architecture;
	const char *positions;    /* the key of the longest sequence */
	const char *rotary_share; /* of a head that turns; NULL: all of it */
	double rotary_fallback;
	const struct hf_key *keys;           /* ends with a NULL name */
	const struct hf_constant *constants; /* the same */
};

static const struct hf_key llama_keys[] = {
	{ "vocab_size", HF_SIZE, FIELD(vocab), NAN },
	{ "hidden_size", HF_SIZE, FIELD(dim), NAN },
	{ "intermediate_size", HF_SIZE, FIELD(ffn), NAN },
	{ "num_hidden_layers", HF_SIZE, FIELD(layers), NAN },
	{ "num_attention_heads", HF_SIZE, FIELD(heads), NAN },
	{ "num_key_value_heads", HF_SIZE, FIELD(kv_heads), 0 },
	{ "rms_norm_eps", HF_FLOAT, FIELD(norm_eps), 1e-6 },
	{ "rope_theta", HF_DOUBLE, FIELD(rope_theta), 10000.0 },
	{ "tie_word_embeddings", HF_BOOL, FIELD(tied), 0 },
	{ .name = NULL },
};

static const struct hf_constant llama_constants[] = {
	{ "hidden_act", "silu", false, false },     { "attention_bias", NULL, false, false },
	{ "mlp_bias", NULL, false, false },         { "sliding_window", NULL, false, true },
	{ "num_local_experts", NULL, false, true }, { .name = NULL },
};

static const struct hf_key neox_keys[] = {
	{ "vocab_size", HF_SIZE, FIELD(vocab), NAN },
	{ "hidden_size", HF_SIZE, FIELD(dim), NAN },
	{ "intermediate_size", HF_SIZE, FIELD(ffn), NAN },
	{ "num_hidden_layers", HF_SIZE, FIELD(layers), NAN },
	{ "num_attention_heads", HF_SIZE, FIELD(heads), NAN },
	{ "layer_norm_eps", HF_FLOAT, FIELD(norm_eps), 1e-5 },
	{ "rotary_emb_base", HF_DOUBLE, FIELD(rope_theta), 10000.0 },
	{ "tie_word_embeddings", HF_BOOL, FIELD(tied), 0 },
	{ .name = NULL },
};

static const struct hf_constant neox_constants[] = {
	{ "hidden_act", "gelu", false, false },
	{ "use_parallel_residual", NULL, true, false },
	{ "attention_bias", NULL, true, false },
	{ .name = NULL },
};

static const struct hf_key gpt2_keys[] = {
	{ "vocab_size", HF_SIZE, FIELD(vocab), NAN },
	{ "n_embd", HF_SIZE, FIELD(dim), NAN },
	{ "n_inner", HF_SIZE, FIELD(ffn), 0 },
	{ "n_layer", HF_SIZE, FIELD(layers), NAN },
	{ "n_head", HF_SIZE, FIELD(heads), NAN },
	{ "n_positions", HF_SIZE, FIELD(positions), 1024 },
	{ "layer_norm_epsilon", HF_FLOAT, FIELD(norm_eps), 1e-5 },
	{ "tie_word_embeddings", HF_BOOL, FIELD(tied), 1 },
	{ .name = NULL },
};

static const struct hf_constant gpt2_constants[] = {
	{ "activation_function", "gelu_new", false, false },
	{ "scale_attn_weights", NULL, true, false },
	{ "scale_attn_by_inverse_layer_idx", NULL, false, false },
	{ "add_cross_attention", NULL, false, false },
	{ .name = NULL },
};

static const struct hf_family families[MODEL_FAMILY_COUNT] = {
	[MODEL_LLAMA] = { "llama", "LlamaForCausalLM", "max_position_embeddings", NULL, 1,
			  llama_keys, llama_constants },
	[MODEL_NEOX] = { "gpt_neox", "GPTNeoXForCausalLM", "max_position_embeddings", "rotary_pct",
			 0.25, neox_keys, neox_constants },
	[MODEL_GPT2] = { "gpt2", "GPT2LMHeadModel", "n_positions", NULL, 1, gpt2_keys,
			 gpt2_constants },
};

/* --- writing -------------------------------------------------------------------------------- */

static void put_key(json_t *o, const struct hf_key *key, const struct model_shape *shape)
{
	const char *at = (const char *)shape + key->offset;
	size_t size;
	float real;
	double precise;
	bool flag;

	switch (key->type) {
	case HF_SIZE:
		memcpy(&size, at, sizeof(size));
		js_set_int(o, key->name, (int64_t)size);
		break;
	case HF_FLOAT:
		memcpy(&real, at, sizeof(real));
		js_set_real(o, key->name, (double)real);
		break;
	case HF_DOUBLE:
		memcpy(&precise, at, sizeof(precise));
		js_set_real(o, key->name, precise);
		break;
	case HF_BOOL:
		memcpy(&flag, at, sizeof(flag));
		js_set_bool(o, key->name, flag);
		break;
	}
}

static json_t *scaling_json(const struct rope_scaling *s)
{
	return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", s->factor,
			 "low_freq_factor", s->low, "high_freq_factor", s->high,
			 "original_max_position_embeddings", (json_int_t)s->original);
}

/* Whoever does not know u-muP must not take the weights for those of a plain Llama. */
static const char UMUP_TYPE[] = "lbworker_umup_llama", UMUP_NAME[] = "LbworkerUmupLlama";

static const struct {
	const char *name;
	size_t offset;
} umup_keys[] = {
	{ "attention", offsetof(struct umup, attention) },
	{ "activation", offsetof(struct umup, activation) },
	{ "residual", offsetof(struct umup, residual) },
	{ "residual_attention_ratio", offsetof(struct umup, ratio) },
	{ "loss", offsetof(struct umup, loss) },
	{ "context", offsetof(struct umup, context) },
};
enum { UMUP_KEYS = sizeof(umup_keys) / sizeof(umup_keys[0]) };

static void put_umup(json_t *o, const struct umup *u)
{
	json_t *keys = json_object();

	for (size_t i = 0; i < UMUP_KEYS; i++) {
		double value;
		memcpy(&value, (const char *)u + umup_keys[i].offset, sizeof(value));
		js_set_real(keys, umup_keys[i].name, value);
	}
	json_object_set_new(o, "u_mup", keys);
	js_set_str(o, "model_type", UMUP_TYPE);
	json_object_set_new(o, "architectures", json_pack("[s]", UMUP_NAME));
}

static int read_umup(const json_t *o, struct umup *u, struct err *err)
{
	const json_t *keys = json_object_get(o, "u_mup");

	u->enable = true;
	for (size_t i = 0; i < UMUP_KEYS; i++) {
		double value = js_real(keys, umup_keys[i].name, 0);
		if (!(value > 0))
			return err_set(err, ERR_USAGE, "u_mup.%s must be above 0",
				       umup_keys[i].name);
		memcpy((char *)u + umup_keys[i].offset, &value, sizeof(value));
	}
	return 0;
}

json_t *hf_config_json(const struct model_shape *shape, size_t positions, const char *dtype)
{
	const struct hf_family *f = &families[shape->family];
	json_t *o = json_pack("{s:[s], s:s, s:s}", "architectures", f->architecture, "model_type",
			      f->model_type, "torch_dtype", dtype);

	for (const struct hf_constant *c = f->constants; c->name; c++) {
		if (c->text)
			js_set_str(o, c->name, c->text);
		else if (!c->none)
			js_set_bool(o, c->name, c->flag);
	}
	for (const struct hf_key *key = f->keys; key->name; key++)
		put_key(o, key, shape);
	if (f->rotary_share)
		js_set_real(o, f->rotary_share,
			    shape->rotary ? (double)shape->rotary * (double)shape->heads /
						    (double)shape->dim
					  : 1.0);
	if (shape->scaling.factor > 0)
		json_object_set_new(o, "rope_scaling", scaling_json(&shape->scaling));
	if (!json_object_get(o, f->positions))
		js_set_int(o, f->positions, (int64_t)positions);
	if (shape->head_dim)
		js_set_int(o, "head_dim", (int64_t)shape->head_dim);
	if (shape->umup.enable)
		put_umup(o, &shape->umup);
	return o;
}

/* --- reading -------------------------------------------------------------------------------- */

static int take_key(const json_t *o, const struct hf_key *key, struct model_shape *shape,
		    struct err *err)
{
	const json_t *value = json_object_get(o, key->name);
	char *at = (char *)shape + key->offset;
	bool is_absent = !value || json_is_null(value);

	if (is_absent && isnan(key->fallback))
		return err_set(err, ERR_USAGE, "%s is missing", key->name);
	if (!is_absent && (key->type == HF_BOOL ? !json_is_boolean(value) : !json_is_number(value)))
		return err_set(err, ERR_USAGE, "%s is of the wrong type", key->name);
	double number = is_absent ? key->fallback : json_number_value(value);
	if (!is_absent && key->type == HF_BOOL)
		number = json_is_true(value);
	if (number < 0 || number > 1e15)
		return err_set(err, ERR_USAGE, "%s = %g is out of range", key->name, number);
	const size_t size = (size_t)number;
	const float real = (float)number;
	const bool flag = number != 0;
	switch (key->type) {
	case HF_SIZE:
		memcpy(at, &size, sizeof(size));
		break;
	case HF_FLOAT:
		memcpy(at, &real, sizeof(real));
		break;
	case HF_DOUBLE:
		memcpy(at, &number, sizeof(number));
		break;
	case HF_BOOL:
		memcpy(at, &flag, sizeof(flag));
		break;
	}
	return 0;
}

static int check_constant(const json_t *o, const struct hf_constant *c, struct err *err)
{
	const json_t *value = json_object_get(o, c->name);
	bool is_ours;

	if (!value || json_is_null(value))
		is_ours = true;
	else if (c->none)
		return err_set(err, ERR_USAGE,
			       "%s is not supported: a model without it, or with null there",
			       c->name);
	else if (c->text)
		is_ours = strcmp(js_str(o, c->name, ""), c->text) == 0;
	else
		is_ours = json_is_boolean(value) && json_is_true(value) == c->flag;
	if (is_ours)
		return 0;
	return err_set(err, ERR_USAGE, "%s must be %s", c->name,
		       c->text   ? c->text
		       : c->flag ? "true"
				 : "false");
}

static int read_scaling(const json_t *rope, struct rope_scaling *out, struct err *err)
{
	out->factor = js_real(rope, "factor", 0);
	out->low = js_real(rope, "low_freq_factor", 0);
	out->high = js_real(rope, "high_freq_factor", 0);
	out->original = js_real(rope, "original_max_position_embeddings", 0);
	if (out->factor >= 1 && out->low > 0 && out->high > out->low && out->original >= 1)
		return 0;
	return err_set(err, ERR_USAGE,
		       "rope scaling of type llama3 needs factor, low_freq_factor, "
		       "high_freq_factor and original_max_position_embeddings");
}

/* transformers 5 keeps the rotary keys in an object of their own. */
static int read_rope(const json_t *o, const struct hf_family *f, struct model_shape *shape,
		     struct err *err)
{
	static const char *const names[] = { "rope_scaling", "rope_parameters" };
	double share = f->rotary_share ? js_real(o, f->rotary_share, f->rotary_fallback) : 1;

	for (size_t i = 0; i < 2; i++) {
		const json_t *rope = json_object_get(o, names[i]);
		if (!json_is_object(rope))
			continue;
		const char *type = js_str(rope, "rope_type", js_str(rope, "type", "default"));
		shape->rope_theta = js_real(rope, "rope_theta", shape->rope_theta);
		share = js_real(rope, "partial_rotary_factor", share);
		if (strcmp(type, "llama3") == 0) {
			if (read_scaling(rope, &shape->scaling, err))
				return -1;
		} else if (strcmp(type, "default") != 0) {
			return err_set(err, ERR_USAGE, "%s of type \"%.40s\" is not supported",
				       names[i], type);
		}
	}
	if (!(share > 0 && share <= 1))
		return err_set(err, ERR_USAGE, "the rotary share %g must be above 0, at most 1",
			       share);
	size_t head_dim = shape->heads > 0 ? shape->dim / shape->heads : 0;
	if (shape->head_dim)
		head_dim = shape->head_dim;
	if (share < 1)
		shape->rotary = (size_t)(share * (double)head_dim);
	return 0;
}

/* Only where it is not what the width gives. */
static int read_head_dim(const json_t *o, struct model_shape *s, struct err *err)
{
	int64_t given = js_int(o, "head_dim", 0);

	if (given == 0 || (s->heads > 0 && (size_t)given * s->heads == s->dim))
		return 0;
	if (given < 0 || s->family != MODEL_LLAMA)
		return err_set(err, ERR_USAGE,
			       "head_dim must be hidden_size / num_attention_heads");
	s->head_dim = (size_t)given;
	return 0;
}

/* Mistral is Llama where it has no sliding window. Its defaults are others, so they must be spelled
 * out. */
static int check_mistral(const json_t *o, struct err *err)
{
	static const char *const needed[] = { "sliding_window", "num_key_value_heads" };

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!json_object_get(o, needed[i]))
			return err_set(err, ERR_USAGE, "%s is missing, and Mistral's default is %s",
				       needed[i],
				       i == 0 ? "a window of 4096, which is not "
						"supported: null would do"
					      : "8");
	return 0;
}

static int read_shape(const json_t *o, struct model_shape *out, size_t *positions, struct err *err)
{
	const char *type = js_str(o, "model_type", "");
	const struct hf_family *f = NULL;

	for (int i = 0; i < MODEL_FAMILY_COUNT; i++)
		if (strcmp(families[i].model_type, type) == 0) {
			out->family = (enum model_family)i;
			f = &families[i];
		}
	if (strcmp(type, "mistral") == 0) {
		f = &families[MODEL_LLAMA];
		if (check_mistral(o, err))
			return -1;
	}
	if (strcmp(type, UMUP_TYPE) == 0) {
		f = &families[MODEL_LLAMA];
		if (read_umup(o, &out->umup, err))
			return -1;
	}
	if (!f)
		return err_set(err, ERR_USAGE,
			       "model_type \"%.40s\" is not one of: llama, mistral, gpt_neox, "
			       "gpt2",
			       type);
	for (const struct hf_key *key = f->keys; key->name; key++)
		if (take_key(o, key, out, err))
			return -1;
	for (const struct hf_constant *c = f->constants; c->name; c++)
		if (check_constant(o, c, err))
			return -1;
	if (out->kv_heads == 0)
		out->kv_heads = out->heads;
	if (out->ffn == 0)
		out->ffn = 4 * out->dim;
	*positions = (size_t)js_int(o, f->positions, 2048);
	return read_head_dim(o, out, err) || read_rope(o, f, out, err) ? -1 : 0;
}

int hf_config_read(struct model_shape *out, size_t *positions, const char *folder, struct err *err)
{
	char *path = path_join("%s/config.json", folder);
	json_t *o = js_load(path, MAX_CONFIG_BYTES, err);
	int rc = -1;

	*out = (struct model_shape){ 0 };
	if (o) {
		rc = read_shape(o, out, positions, err);
		if (rc)
			err_wrap(err, "%s", path);
	}
	json_decref(o);
	free(path);
	return rc;
}
