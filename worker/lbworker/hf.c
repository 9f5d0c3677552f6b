/* SPDX-License-Identifier: MIT */
/* hf.c - config.json both ways, by one table per family.
 * Names and defaults are those of transformers' LlamaConfig. */
#include "worker/lbworker/hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"

enum { MAX_CONFIG_BYTES = 1 << 20 };

#define FIELD(name) offsetof(struct model_shape, name)

enum hf_type { HF_SIZE, HF_FLOAT, HF_DOUBLE, HF_BOOL };

struct hf_key {			/* one field of the shape */
	const char *name;
	enum hf_type type;
	size_t offset;
	double fallback;	/* what an absent key means; NAN: it is required */
};

struct hf_constant {		/* what our model always does: text, or a flag */
	const char *name, *text;
	bool flag;
	bool is_required;	/* an absent key means something else */
};

struct hf_family {
	const char *model_type, *architecture;
	const struct hf_key *keys;		/* ends with a NULL name */
	const struct hf_constant *constants;	/* the same */
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
	{ NULL, HF_SIZE, 0, 0 },
};

static const struct hf_constant llama_constants[] = {
	{ "hidden_act", "silu", false, false },
	{ "attention_bias", NULL, false, false },
	{ "mlp_bias", NULL, false, false },
	{ NULL, NULL, false, false },
};

static const struct hf_family families[] = {
	{ "llama", "LlamaForCausalLM", llama_keys, llama_constants },
};
enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

static const struct hf_family *family_of(const struct model_shape *shape)
{
	(void)shape;
	return &families[0];
}

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

json_t *hf_config_json(const struct model_shape *shape, size_t positions, const char *dtype)
{
	const struct hf_family *f = family_of(shape);
	json_t *o = json_pack("{s:[s], s:s, s:s}", "architectures", f->architecture, "model_type",
			      f->model_type, "torch_dtype", dtype);

	for (const struct hf_constant *c = f->constants; c->name; c++) {
		if (c->text)
			js_set_str(o, c->name, c->text);
		else
			js_set_bool(o, c->name, c->flag);
	}
	for (const struct hf_key *key = f->keys; key->name; key++)
		put_key(o, key, shape);
	js_set_int(o, "max_position_embeddings", (int64_t)positions);
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
		is_ours = !c->is_required;
	else if (c->text)
		is_ours = strcmp(js_str(o, c->name, ""), c->text) == 0;
	else
		is_ours = json_is_boolean(value) && json_is_true(value) == c->flag;
	if (is_ours)
		return 0;
	return err_set(err, ERR_USAGE, "%s must be %s", c->name,
		       c->text ? c->text : c->flag ? "true" : "false");
}

/* transformers 5 keeps the rotary keys in an object of their own. */
static int check_rope(const json_t *o, struct model_shape *shape, struct err *err)
{
	static const char *const names[] = { "rope_scaling", "rope_parameters" };

	for (size_t i = 0; i < 2; i++) {
		const json_t *rope = json_object_get(o, names[i]);
		if (!json_is_object(rope))
			continue;
		const char *type = js_str(rope, "rope_type", js_str(rope, "type", "default"));
		if (strcmp(type, "default") != 0)
			return err_set(err, ERR_USAGE, "%s of type \"%.40s\" is not supported",
				       names[i], type);
		shape->rope_theta = js_real(rope, "rope_theta", shape->rope_theta);
	}
	return 0;
}

static int check_head_dim(const json_t *o, const struct model_shape *s, struct err *err)
{
	int64_t given = js_int(o, "head_dim", 0);

	if (given == 0 || (s->heads > 0 && (size_t)given * s->heads == s->dim))
		return 0;
	return err_set(err, ERR_USAGE, "head_dim must be hidden_size / num_attention_heads");
}

static int read_shape(const json_t *o, struct model_shape *out, struct err *err)
{
	const char *type = js_str(o, "model_type", "");
	const struct hf_family *f = NULL;

	for (size_t i = 0; i < FAMILIES; i++)
		if (strcmp(families[i].model_type, type) == 0)
			f = &families[i];
	if (!f)
		return err_set(err, ERR_USAGE, "model_type \"%.40s\" is not one of: llama", type);
	for (const struct hf_key *key = f->keys; key->name; key++)
		if (take_key(o, key, out, err))
			return -1;
	for (const struct hf_constant *c = f->constants; c->name; c++)
		if (check_constant(o, c, err))
			return -1;
	if (out->kv_heads == 0)
		out->kv_heads = out->heads;
	return check_rope(o, out, err) || check_head_dim(o, out, err) ? -1 : 0;
}

int hf_config_read(struct model_shape *out, size_t *positions, const char *folder, struct err *err)
{
	char *path = xasprintf("%s/config.json", folder);
	json_t *o = js_load(path, MAX_CONFIG_BYTES, err);
	int rc = -1;

	*out = (struct model_shape){ 0 };
	if (o) {
		rc = read_shape(o, out, err);
		if (rc)
			err_wrap(err, "%s", path);
		int64_t longest = js_int(o, "max_position_embeddings", 2048);
		*positions = longest > 0 ? (size_t)longest : 1;
	}
	json_decref(o);
	free(path);
	return rc;
}
