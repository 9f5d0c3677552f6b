/* SPDX-License-Identifier: MIT */
/* hf_config.c - config.json both ways, by one table per family (hf_config_rows.h). */
#include "worker/lbworker/families/hf_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/paths.h"
#include "worker/lbworker/families/family.h"
#include "worker/lbworker/families/hf_config_rows.h"

enum { MAX_CONFIG_BYTES = 1 << 20, MAX_SIZE = 1 << 28 };

/* --- writing -------------------------------------------------------------------------------- */

static size_t head_dim_of(const struct model_shape *s)
{
	return s->head_dim ? s->head_dim : s->heads > 0 ? s->dim / s->heads : 0;
}

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
	case HF_SCALAR:
		memcpy(&precise, at, sizeof(precise));
		precise = precise > 0 ? precise : (double)head_dim_of(shape);
		json_object_set_new(o, key->name,
				    precise == floor(precise) ? json_integer((json_int_t)precise)
							      : json_real(precise));
		break;
	case HF_CAP:
		memcpy(&precise, at, sizeof(precise));
		json_object_set_new(o, key->name, precise > 0 ? json_real(precise) : json_null());
		break;
	}
}

static json_t *scaling_json(const struct rope_scaling *s)
{
	if (s->original == 0)
		return json_pack("{s:s, s:f}", "rope_type", "linear", "factor", s->factor);
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

static bool is_full(const struct model_shape *s, size_t l)
{
	return s->window == 0 || (s->full_every > 0 && (l + 1) % s->full_every == 0);
}

static const char FULL[] = "full_attention", SLIDING[] = "sliding_attention";

/* layer_types only where a family has it: a config.json of Mistral with one is another family's.
 * Where it says that no layer has a window, transformers wants one of Gemma all the same. */
static void put_window(json_t *o, const struct hf_family *f, const struct model_shape *s)
{
	json_int_t window = s->window > 0 ? (json_int_t)s->window : f->every > 0 ? f->window : 0;
	json_t *types = json_array();

	json_object_set_new(o, "sliding_window", window > 0 ? json_integer(window) : json_null());
	if (f->window_flag)
		js_set_bool(o, f->window_flag, s->window > 0);
	for (size_t l = 0; l < s->layers; l++)
		json_array_append_new(types, json_string(is_full(s, l) ? FULL : SLIDING));
	if (f->every > 0 || f->window_flag || s->full_every > 0)
		json_object_set(o, "layer_types", types);
	json_decref(types);
}

/* What transformers would take absent keys for: windows, experts in every layer. */
static void put_experts(json_t *o, const struct hf_family *f, const struct model_shape *s)
{
	json_t *dense = json_array();

	if (f->window_from > 0)
		json_object_set_new(o, "sliding_window", json_null());
	for (size_t l = 0; l < s->experts.dense; l++)
		json_array_append_new(dense, json_integer((json_int_t)l));
	if (f->dense_list)
		json_object_set(o, f->dense_list, dense);
	json_decref(dense);
}

/* transformers takes int(share * head_dim) elements: what a division lost must not cost one. */
static double rotary_share(const struct model_shape *s)
{
	const double head_dim = (double)head_dim_of(s);
	const double share = s->rotary ? (double)s->rotary / head_dim : 1;

	return (size_t)(share * head_dim) < s->rotary ? nextafter(share, 1) : share;
}

json_t *hf_config_json(const struct model_shape *shape, size_t positions, const char *dtype)
{
	const struct hf_family *f = &hf_families[shape->family];
	json_t *o = json_pack("{s:[s], s:s, s:s}", "architectures", f->architecture, "model_type",
			      f->model_type, "torch_dtype", dtype);

	for (const struct hf_constant *c = f->constants; c->name; c++) {
		if (c->text)
			js_set_str(o, c->name, c->text);
		else if (c->one)
			js_set_int(o, c->name, 1);
		else if (!c->none)
			js_set_bool(o, c->name, c->flag);
	}
	for (const struct hf_key *key = f->keys; key->name; key++)
		put_key(o, key, shape);
	if (f->rotary_share)
		js_set_real(o, f->rotary_share, rotary_share(shape));
	if (shape->family == MODEL_GEMMA3 && shape->local_theta == 0)
		js_set_real(o, "rope_local_base_freq", shape->rope_theta);
	if (shape->scaling.factor > 0)
		json_object_set_new(o, "rope_scaling", scaling_json(&shape->scaling));
	if (!json_object_get(o, f->positions))
		js_set_int(o, f->positions, (int64_t)positions);
	if (shape->head_dim || f->head_dim)
		js_set_int(o, "head_dim", (int64_t)head_dim_of(shape));
	if (f->has_window)
		put_window(o, f, shape);
	if (shape->experts.count > 0)
		put_experts(o, f, shape);
	if (shape->umup.enable)
		put_umup(o, &shape->umup);
	return o;
}

/* --- reading -------------------------------------------------------------------------------- */

/* transformers 5 writes one of them under the name that Mixtral has for it. */
static const json_t *value_of(const json_t *o, const char *name)
{
	const json_t *value = json_object_get(o, name);

	return value || strcmp(name, "num_experts") != 0 ? value
							 : json_object_get(o, "num_local_experts");
}

static int take_key(const json_t *o, const struct hf_key *key, struct model_shape *shape,
		    struct err *err)
{
	const json_t *value = value_of(o, key->name);
	char *at = (char *)shape + key->offset;
	bool is_absent = !value || json_is_null(value);

	if (key->type == HF_CAP && json_is_null(value))
		return 0;
	if (is_absent && isnan(key->fallback))
		return err_set(err, ERR_USAGE, "%s is missing", key->name);
	if (!is_absent && (key->type == HF_BOOL ? !json_is_boolean(value) : !json_is_number(value)))
		return err_set(err, ERR_USAGE, "%s is of the wrong type", key->name);
	double number = is_absent ? key->fallback : json_number_value(value);
	if (!is_absent && key->type == HF_BOOL)
		number = json_is_true(value);
	bool is_size = key->type == HF_SIZE, is_nothing = number == 0 && key->fallback != 0;
	if (is_size && number != floor(number))
		return err_set(err, ERR_USAGE, "%s = %g is no whole number", key->name, number);
	if (number < 0 || number > (is_size ? MAX_SIZE : 1e15) || (is_size && is_nothing))
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
	case HF_SCALAR:
	case HF_CAP:
		memcpy(at, &number, sizeof(number));
		break;
	case HF_BOOL:
		memcpy(at, &flag, sizeof(flag));
		break;
	}
	return 0;
}

/* transformers has several names for one function. */
static bool is_same_activation(const char *a, const char *b)
{
	static const char *const usual[][2] = {
		{ "swish", "silu" },
		{ "gelu_pytorch_tanh", "gelu_new" },
		{ "gelu_fast", "gelu_new" },
	};

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		a = strcmp(a, usual[i][0]) == 0 ? usual[i][1] : a;
		b = strcmp(b, usual[i][0]) == 0 ? usual[i][1] : b;
	}
	return strcmp(a, b) == 0;
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
	else if (c->one)
		is_ours = json_is_integer(value) && json_integer_value(value) == 1;
	else if (c->text)
		is_ours = is_same_activation(js_str(o, c->name, ""), c->text);
	else
		is_ours = json_is_boolean(value) && json_is_true(value) == c->flag;
	if (is_ours)
		return 0;
	return err_set(err, ERR_USAGE, "%s must be %s", c->name,
		       c->text   ? c->text
		       : c->one  ? "1"
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

static const char *rope_type(const json_t *rope)
{
	return js_str(rope, "rope_type", js_str(rope, "type", "default"));
}

/* transformers 5 keeps the rotary keys in an object of their own, which the one of before replaces
 * where both are there; in Gemma 3 it counts over it. */
static int read_rope(const json_t *o, const struct hf_family *f, struct model_shape *shape,
		     struct err *err)
{
	static const char *const names[] = { "rope_parameters", "rope_scaling" };
	bool is_replaced = json_object_size(json_object_get(o, "rope_scaling")) > 0 &&
			   shape->family != MODEL_GEMMA3;
	double share = f->rotary_share ? js_real(o, f->rotary_share, f->rotary_fallback)
				       : js_real(o, "partial_rotary_factor", 1);

	for (size_t i = is_replaced ? 1 : 0; i < 2; i++) {
		const json_t *rope = json_object_get(o, names[i]);
		const json_t *local = json_object_get(rope, SLIDING);
		if (json_is_object(json_object_get(rope, FULL)))
			rope = json_object_get(rope, FULL);
		if (json_object_size(rope) == 0)
			continue;
		shape->local_theta = js_real(local, "rope_theta", shape->local_theta);
		if (strcmp(rope_type(local), "default") != 0)
			return err_set(err, ERR_USAGE, "%s.%s of type \"%.40s\" is not supported",
				       names[i], SLIDING, rope_type(local));
		const char *type = rope_type(rope);
		shape->rope_theta = js_real(rope, "rope_theta", shape->rope_theta);
		share = js_real(rope, "partial_rotary_factor", share);
		if (strcmp(type, "llama3") == 0) {
			if (read_scaling(rope, &shape->scaling, err))
				return -1;
		} else if (strcmp(type, "linear") == 0) {
			shape->scaling.factor = js_real(rope, "factor", 1);
			if (!(shape->scaling.factor >= 1))
				return err_set(err, ERR_USAGE, "%s: a factor of at least 1",
					       names[i]);
		} else if (strcmp(type, "default") == 0) {
			shape->scaling = (struct rope_scaling){ 0 };
		} else {
			return err_set(err, ERR_USAGE, "%s of type \"%.40s\" is not supported",
				       names[i], type);
		}
	}
	if (model_is_rotary(shape->family) && !(shape->rope_theta > 0))
		return err_set(err, ERR_USAGE, "rope_theta = %g is out of range",
			       shape->rope_theta);
	if (!(share > 0 && share <= 1))
		return err_set(err, ERR_USAGE, "the rotary share %g must be above 0, at most 1",
			       share);
	if (share < 1 && !f->rotary_share)
		return err_set(err, ERR_USAGE, "the rotary share %g must be 1 in %s", share,
			       f->model_type);
	if (share < 1)
		shape->rotary = (size_t)(share * (double)head_dim_of(shape));
	if (share < 1 && shape->rotary == 0) /* which means all of it */
		return err_set(err, ERR_USAGE, "the rotary share %g of a head of %zu is nothing",
			       share, head_dim_of(shape));
	return 0;
}

/* Only where it is not what the width gives. */
static int read_head_dim(const json_t *o, const struct hf_family *f, struct model_shape *s,
			 struct err *err)
{
	int64_t given = js_int(o, "head_dim", f->head_dim);

	if (given == 0 || (s->heads > 0 && (size_t)given * s->heads == s->dim))
		return 0;
	if (given < 0 || !model_has_own_heads(s->family))
		return err_set(err, ERR_USAGE,
			       "head_dim must be hidden_size / num_attention_heads");
	s->head_dim = (size_t)given;
	return 0;
}

static bool is_text(const json_t *value, const char *text)
{
	return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Layers without a window must be every so-manieth one. */
static int read_layer_types(const json_t *types, struct model_shape *s, struct err *err)
{
	size_t every = 0;

	for (size_t l = 0; l < json_array_size(types) && every == 0; l++)
		if (is_text(json_array_get(types, l), FULL))
			every = l + 1;
	if (every > 0 || s->full_every <= s->layers) /* else too few layers show it */
		s->full_every = every;
	if (every == 1)
		s->window = s->full_every = 0;
	if (json_array_size(types) != s->layers)
		return err_set(err, ERR_USAGE,
			       "layer_types has %zu entries, and there are %zu layers",
			       json_array_size(types), s->layers);
	for (size_t l = 0; l < s->layers; l++) {
		if (!is_text(json_array_get(types, l), is_full(s, l) ? FULL : SLIDING))
			return err_set(err, ERR_USAGE,
				       "layer_types: layer %zu must be \"%s\": full ones are every "
				       "so-manieth",
				       l, is_full(s, l) ? FULL : SLIDING);
	}
	return 0;
}

static int read_window(const json_t *o, const struct hf_family *f, struct model_shape *s,
		       struct err *err)
{
	const json_t *types = json_object_get(o, "layer_types");
	bool is_on = !f->window_flag || json_is_true(json_object_get(o, f->window_flag));
	int64_t window = json_is_null(json_object_get(o, "sliding_window"))
				 ? 0
				 : js_int(o, "sliding_window", f->window);
	/* in others that key means nothing to transformers */
	int64_t every = s->family == MODEL_GEMMA3 ? js_int(o, "sliding_window_pattern", f->every)
						  : (int64_t)f->every;

	if (!f->has_window || !is_on || window == 0)
		return 0;
	if (window < 0 || every < 0)
		return err_set(err, ERR_USAGE, "sliding_window must be above 0, or null");
	s->window = (size_t)window;
	s->full_every = (size_t)every;
	if (json_is_array(types))
		return read_layer_types(types, s, err);
	if (f->window_flag)
		return err_set(err, ERR_USAGE, "%s needs layer_types", f->window_flag);
	if (every == 1)
		s->window = s->full_every = 0;
	return 0;
}

/* Ours have no window. */
static int check_full_attention(const json_t *o, const struct hf_family *f,
				const struct model_shape *s, struct err *err)
{
	const json_t *types = json_object_get(o, "layer_types");
	bool has_window = !json_is_null(json_object_get(o, "sliding_window"));

	for (size_t l = 0; l < json_array_size(types); l++)
		if (!is_text(json_array_get(types, l), FULL))
			return err_set(err, ERR_USAGE, "layer_types: all must be \"%s\" in %s",
				       FULL, f->model_type);
	if (f->window_from > 0 && has_window && !json_is_array(types) &&
	    js_int(o, "max_window_layers", f->window_from) < (int64_t)s->layers)
		return err_set(err, ERR_USAGE,
			       "sliding_window must be null, or max_window_layers at least "
			       "num_hidden_layers");
	return 0;
}

/* Layers without experts must be the first ones. */
static int read_experts(const json_t *o, const struct hf_family *f, struct model_shape *s,
			struct err *err)
{
	const json_t *dense = f->dense_list ? json_object_get(o, f->dense_list) : NULL;

	if (!model_has_experts(s->family))
		return 0;
	if (f->dense_list) /* families without the key of a scale, too */
		s->experts.scale = 1;
	s->experts.dense += json_array_size(dense);
	for (size_t l = 0; l < json_array_size(dense); l++) {
		const json_t *at = json_array_get(dense, l);
		if (!json_is_integer(at) || json_integer_value(at) != (json_int_t)l)
			return err_set(err, ERR_USAGE, "%s must be the first ones, 0, 1, ...",
				       f->dense_list);
	}
	return check_full_attention(o, f, s, err);
}

static int read_shape(const json_t *o, struct model_shape *out, size_t *positions, struct err *err)
{
	const char *type = js_str(o, "model_type", "");
	const struct hf_family *f = NULL;

	for (int i = 0; i < MODEL_FAMILY_COUNT; i++)
		if (strcmp(hf_families[i].model_type, type) == 0) {
			out->family = (enum model_family)i;
			f = &hf_families[i];
		}
	if (strcmp(type, UMUP_TYPE) == 0) {
		f = &hf_families[MODEL_LLAMA];
		if (read_umup(o, &out->umup, err))
			return -1;
	}
	if (!f)
		return err_set(err, ERR_USAGE,
			       "model_type \"%.40s\" is not one of: llama, gpt_neox, gpt2, "
			       "mistral, qwen3, olmo2, gemma2, gemma3_text, qwen3_moe, dots1",
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
	*positions = (size_t)js_int(o, f->positions, f->longest);
	return read_head_dim(o, f, out, err) || read_window(o, f, out, err) ||
			       read_experts(o, f, out, err) || read_rope(o, f, out, err)
		       ? -1
		       : 0;
}

int hf_config_read(struct model_shape *out, size_t *positions, const char *folder, struct err *err)
{
	char *path = path_join("%s/config.json", folder);
	json_t *o = js_load(path, MAX_CONFIG_BYTES, err);
	int rc = -1;

	*out = (struct model_shape){ 0 };
	if (o) {
		/* of a model that also sees, the part for text */
		const json_t *text = json_object_get(o, "text_config");
		rc = read_shape(json_is_object(text) ? text : o, out, positions, err);
		if (rc)
			err_wrap(err, "%s", path);
	}
	json_decref(o);
	free(path);
	return rc;
}

int hf_config_refuse_head(const char *folder, enum model_family family, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "%s: %s is not the embedding, though config.json says so: "
		       "\"tie_word_embeddings\": false there",
		       folder, family_head(family_of(family)));
}
