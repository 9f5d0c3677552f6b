/* SPDX-License-Identifier: MIT */
/* recipe.c - the table of recipes, and those that a file adds. */
#include "worker/lbworker/recipes/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/config/keys.h"

const char *const recipe_slot_names[SLOTS] = { "forward.x", "forward.w", "input.g",
					       "input.w",   "weight.g",  "weight.x" };

/* A new recipe of known parts is one row here: forward x, w; input's gradient g, w; weight's
 * gradient g, x. */
/* clang-format off */
static const struct recipe_row recipes[] = {
	{ "none", "every product as the device computes", "",
	  { "-", "-", "-", "-", "-", "-" } },
	{ "bf16", "operands in bf16, fp32 sums: what bf16 products are", "",
	  { "bf16", "bf16", "bf16", "bf16", "bf16", "bf16" } },
	{ "tensorwise", "FP8, one current scale a tensor", "torchao.float8, tensorwise",
	  { "e4m3fn tensor", "e4m3fn tensor", "e5m2 tensor", "e4m3fn tensor", "e5m2 tensor", "e4m3fn tensor" } },
	{ "delayed", "FP8, one scale a tensor by the amax of the last 16 steps", "Transformer Engine, DelayedScaling",
	  { "e4m3fn tensor delayed:16", "e4m3fn tensor delayed:16", "e5m2 tensor delayed:16",
	    "e4m3fn tensor delayed:16", "e5m2 tensor delayed:16", "e4m3fn tensor delayed:16" } },
	{ "rowwise", "FP8, a scale a row, powers of two", "torchao.float8, rowwise",
	  { "e4m3fn row pow2", "e4m3fn row pow2", "e4m3fn row pow2", "e4m3fn row pow2", "e4m3fn row pow2", "e4m3fn row pow2" } },
	{ "rowwise_with_gw_hp", "as rowwise, the weight's gradient as it is", "torchao.float8, rowwise_with_gw_hp",
	  { "e4m3fn row pow2", "e4m3fn row pow2", "e4m3fn row pow2", "e4m3fn tensor pow2", "-", "-" } },
	{ "blockwise", "FP8, 1x128 for activations and gradients, 128x128 for weights", "DeepSeek-V3, arXiv 2412.19437, 3.3",
	  { "e4m3fn 1x128", "e4m3fn 128x128", "e4m3fn 1x128", "e4m3fn 128x128", "e4m3fn 1x128", "e4m3fn 1x128" } },
	{ "mxfp8", "MX, scales up", "arXiv 2506.08027; torchao, mxfp8_cublas_rceil",
	  { "e4m3fn 1x32 up", "e4m3fn 1x32 up", "e4m3fn 1x32 up", "e4m3fn 1x32 up", "e4m3fn 1x32 up", "e4m3fn 1x32 up" } },
	{ "mxfp8-floor", "MX, scales as the specification has them", "OCP MX 1.0, 6.3; torchao, mxfp8_cublas",
	  { "e4m3fn 1x32 floor", "e4m3fn 1x32 floor", "e4m3fn 1x32 floor", "e4m3fn 1x32 floor", "e4m3fn 1x32 floor", "e4m3fn 1x32 floor" } },
	{ "mxfp6", "MX, e2m3 forward, e3m2 gradients", "OCP MX 1.0; arXiv 2310.10537",
	  { "e2m3 1x32 even", "e2m3 1x32 even", "e3m2 1x32 even", "e2m3 1x32 even", "e3m2 1x32 even", "e2m3 1x32 even" } },
	{ "mxfp4", "MX, gradients turned and rounded by chance", "arXiv 2502.20586",
	  { "e2m1 1x32 even", "e2m1 1x32 even", "e2m1 1x32 up stochastic", "e2m1 1x32 even",
	    "e2m1 1x32 up stochastic hadamard", "e2m1 1x32 even hadamard" } },
	{ "nvfp4", "1x16, weights 16x16, Hadamard before dW, gradients by chance", "arXiv 2509.25149",
	  { "e2m1 1x16 e4m3", "e2m1 16x16 e4m3", "e2m1 1x16 e4m3 stochastic", "e2m1 16x16 e4m3",
	    "e2m1 1x16 e4m3 stochastic hadamard", "e2m1 1x16 e4m3 hadamard" } },
	{ "nvfp4-four-over-six", "as nvfp4, each forward block by the better of two scales", "arXiv 2512.02010",
	  { "e2m1 1x16 e4m3 four-over-six", "e2m1 16x16 e4m3 four-over-six", "e2m1 1x16 e4m3 stochastic",
	    "e2m1 16x16 e4m3 four-over-six", "e2m1 1x16 e4m3 stochastic hadamard", "e2m1 1x16 e4m3 hadamard" } },
	{ "int8", "INT8, a scale a row", "torchao, int8_mixed_precision_training",
	  { "int8 row", "int8 row", "int8 row", "int8 row", "int8 row", "int8 row" } },
};

/* What other programs call them. */
static const struct {
	const char *theirs, *ours;
} aliases[] = {
	{ "mxfp8_cublas", "mxfp8-floor" }, { "mxfp8_emulated", "mxfp8-floor" },
	{ "mxfp8_cublas_rceil", "mxfp8" }, { "mxfp8_rceil", "mxfp8" }, { "deepseek", "blockwise" }, { "", "none" },
};
/* clang-format on */
enum {
	RECIPES = sizeof(recipes) / sizeof(recipes[0]),
	ALIASES = sizeof(aliases) / sizeof(aliases[0])
};

const struct recipe_row *recipe_row(size_t i)
{
	return i < RECIPES ? &recipes[i] : NULL;
}

/* "none, tensorwise, ...". The caller frees. */
static char *list_names(void)
{
	char *names = xstrdup(recipes[0].name);

	for (size_t i = 1; i < RECIPES; i++) {
		char *more = xasprintf("%s, %s", names, recipes[i].name);
		free(names);
		names = more;
	}
	return names;
}

static const struct recipe_row *row_of(const char *name)
{
	for (size_t i = 0; i < ALIASES; i++)
		if (strcmp(aliases[i].theirs, name) == 0)
			name = aliases[i].ours;
	for (size_t i = 0; i < RECIPES; i++)
		if (strcmp(recipes[i].name, name) == 0)
			return &recipes[i];
	return NULL;
}

static int take_row(struct recipe *out, const char *name, struct err *err)
{
	const struct recipe_row *row = row_of(name);

	if (!row) {
		char *names = list_names();
		err_set(err, ERR_USAGE,
			"there is no recipe \"%s\"; allowed: %s, or the path of a "
			"file NAME.toml",
			name, names);
		free(names);
		return -1;
	}
	for (int i = 0; i < SLOTS; i++)
		if (slot_parse(&out->slot[i], row->slot[i], err))
			return -1;
	return 0;
}

/* --- a file ----------------------------------------------------------------------------------- */

static int take_base(struct recipe *out, const struct toml *toml, struct err *err)
{
	const json_t *base = json_object_get(toml->root, "base");
	struct err why = { 0 };

	if (base && !json_is_string(base))
		return keys_refuse(toml, "base", "must be the name of a recipe", err);
	if (take_row(out, base ? json_string_value(base) : "none", &why))
		return keys_refuse(toml, "base", why.text, err);
	return 0;
}

static int take_slot(struct recipe *out, const struct toml *toml, const char *key,
		     const json_t *value, struct err *err)
{
	struct err why = { 0 };

	for (int i = 0; i < SLOTS; i++)
		if (strcmp(recipe_slot_names[i], key) == 0) {
			if (!json_is_string(value))
				return keys_refuse(
					toml, key,
					"must be a slot in quotes, like \"e4m3fn tensor\"", err);
			return slot_parse(&out->slot[i], json_string_value(value), &why)
				       ? keys_refuse(toml, key, why.text, err)
				       : 0;
		}
	if (strcmp(key, "base") == 0)
		return 0;
	return keys_refuse(toml, key,
			   "unknown key; there are base, forward.x, forward.w, input.g, "
			   "input.w, weight.g, weight.x",
			   err);
}

static int take_document(struct recipe *out, const struct toml *toml, struct err *err)
{
	json_t *flat = json_object(), *value;
	const char *key;
	int rc = take_base(out, toml, err);

	toml_flatten(flat, "", toml->root);
	json_object_foreach(flat, key, value) {
		if (rc == 0)
			rc = take_slot(out, toml, key, value, err);
	}
	json_decref(flat);
	return rc;
}

static int load(struct recipe *out, const char *path, struct err *err)
{
	struct toml toml = { 0 };

	if (toml_load(&toml, path, err))
		return -1;
	int rc = take_document(out, &toml, err);
	toml_clear(&toml);
	return rc;
}

/* A product of turned operands needs both turned. */
static int check(const struct recipe *r, struct err *err)
{
	for (int i = 0; i < SLOTS; i += OPERANDS)
		if (r->slot[i].hadamard != r->slot[i + 1].hadamard)
			return err_set(
				err, ERR_USAGE,
				"recipe %s: hadamard must be in both of %s and %s, or in neither",
				r->name, recipe_slot_names[i], recipe_slot_names[i + 1]);
	return 0;
}

int recipe_find(struct recipe *out, const char *name, struct err *err)
{
	size_t len = strlen(name);
	bool is_file = strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".toml") == 0);

	*out = (struct recipe){ .name = xstrdup(name[0] ? name : "none") };
	if ((is_file ? load(out, name, err) : take_row(out, name, err)) == 0 &&
	    check(out, err) == 0)
		return 0;
	recipe_clear(out);
	return -1;
}

void recipe_clear(struct recipe *r)
{
	free(r->name);
	*r = (struct recipe){ 0 };
}
