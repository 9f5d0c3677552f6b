/* SPDX-License-Identifier: MIT */
/* compat_quantize.c - torchtitan's converters float8 and mx as quantize.recipe.
 *
 * After torchtitan 0.2 (torchtitan/config/job_config.py: Float8Linear, MXLinear;
 * components/quantization) and its files of 2024. */
#include "worker/lbworker/config/compat_quantize.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static const struct {
	const char *name;   /* of the converter, and of its section in files of 2025 */
	const char *longer; /* as 0.2 has them */
	const char *recipe; /* when recipe_name is not given */
	const char *called; /* what recipe_name had for that until August 2025 */
} converters[] = {
	{ "float8", "quantize.linear.float8", "tensorwise", "" },
	{ "mx", "quantize.linear.mx", "mxfp8_cublas", "mxfp8" },
};

static json_t *quantize_of(struct toml *toml)
{
	if (!json_object_get(toml->root, "quantize"))
		json_object_set_new(toml->root, "quantize", json_object());
	return json_object_get(toml->root, "quantize");
}

/* Moves nothing over what is there. The line is that of `from`. */
static void give(struct toml *toml, const char *key, json_t *value, const char *from)
{
	json_t *quantize = quantize_of(toml);
	char *to = xasprintf("quantize.%s", key);

	if (json_is_object(quantize) && !json_object_get(quantize, key)) {
		json_object_set(quantize, key, value);
		json_object_set(toml->lines, to, json_object_get(toml->lines, from));
		if (!json_object_get(toml->lines, "quantize"))
			json_object_set(toml->lines, "quantize",
					json_object_get(toml->lines, from));
	}
	free(to);
}

/* Both spellings of a key of the converter's section; *path, which the caller frees, is the one
 * that is there. */
static json_t *setting(struct toml *toml, size_t i, const char *key, char **path)
{
	const char *const sections[] = { converters[i].longer, converters[i].name };
	json_t *value = NULL;

	*path = NULL;
	for (int s = 0; s < 2 && !value; s++) {
		free(*path);
		*path = xasprintf("%s.%s", sections[s], key);
		value = toml_value(toml, *path);
	}
	return value;
}

static void take_converter(struct toml *toml, size_t i, const char *asked_by)
{
	char *path;
	json_t *recipe = setting(toml, i, "recipe_name", &path);
	bool named = json_is_string(recipe) && json_string_length(recipe) > 0;
	bool is_usual = !named || strcmp(json_string_value(recipe), converters[i].called) == 0;
	json_t *fallback = json_string(converters[i].recipe);

	give(toml, "recipe", is_usual ? fallback : recipe, named ? path : asked_by);
	json_decref(fallback);
	free(path);
	json_t *gather = setting(toml, i, "enable_fsdp_float8_all_gather", &path);
	if (i == 0 && !named && json_is_true(gather)) /* with a name it does nothing there */
		give(toml, "fp8_gather", gather, path);
	free(path);
	json_t *filter = setting(toml, i, "filter_fqns", &path);
	if (json_is_array(filter))
		give(toml, "filter_fqns", filter, path);
	free(path);
}

static int converter_of(const char *name)
{
	for (size_t i = 0; i < sizeof(converters) / sizeof(converters[0]); i++)
		if (strcmp(name, converters[i].name) == 0 ||
		    strcmp(name, converters[i].longer) == 0)
			return (int)i;
	return -1;
}

/* model.converters: what is known goes out of the list, but for one of another kind beside it,
 * which is refused with what is left. Also one word, as the files of early 2025 have it. */
static unsigned take_list(struct toml *toml, json_t *holder, const char *path)
{
	json_t *list = json_object_get(holder, "converters");
	unsigned found = 0;
	int i = json_is_string(list) ? converter_of(json_string_value(list)) : -1;

	if (i >= 0) {
		take_converter(toml, (size_t)i, path);
		json_object_set_new(holder, "converters", json_array());
		return 1u << i;
	}
	for (size_t k = json_array_size(list); k-- > 0;) {
		const char *name = json_string_value(json_array_get(list, k));
		i = name ? converter_of(name) : -1;
		if (i < 0 || (found & ~(1u << i)))
			continue;
		take_converter(toml, (size_t)i, path);
		json_array_remove(list, k);
		found |= 1u << i;
	}
	return found;
}

/* float8.enable_float8_linear, in all places that it had. */
static unsigned take_switch(struct toml *toml)
{
	static const char *const places[] = { "float8.enable_float8_linear",
					      "training.enable_float8_linear",
					      "training.enable_fp8_linear", "training.fp8_linear" };
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		json_t *value = toml_value(toml, places[i]);
		if (!json_is_true(value) && (!json_is_string(value) || !json_string_length(value)))
			continue;
		take_converter(toml, 0, places[i]);
		const char *dot = strchr(places[i], '.');
		char *section = xstrndup(places[i], (size_t)(dot - places[i]));
		json_object_set_new(json_object_get(toml->root, section), dot + 1, json_false());
		free(section);
		found = 1;
	}
	return found;
}

static void tell_idle(struct toml *toml, unsigned found, FILE *notes)
{
	char where[TOML_WHERE_BYTES], *path;

	for (size_t i = 0; notes && i < sizeof(converters) / sizeof(converters[0]); i++) {
		json_t *recipe = setting(toml, i, "recipe_name", &path);
		if (!(found & 1u << i) && json_is_string(recipe) && json_string_length(recipe) > 0)
			fprintf(notes,
				"%s: does nothing without model.converters = [\"%s\"], as there; "
				"quantize.recipe is ours\n",
				toml_where(toml, path, where), converters[i].longer);
		free(path);
	}
}

bool compat_quantize(struct toml *toml, FILE *notes)
{
	unsigned found = take_list(toml, json_object_get(toml->root, "model"), "model.converters");

	found |= take_switch(toml);
	tell_idle(toml, found, notes);
	return found != 0;
}
