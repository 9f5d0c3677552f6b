/* SPDX-License-Identifier: MIT */
/* json_document.c - reads the JSON with its lines, then turns what has another form. */
#include "worker/lbworker/config/json_document.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/config/keys.h"

enum { MAX_BYTES = 64 << 20, MAX_DEPTH = 64, PATH_BYTES = 512 };

bool json_document_is(const char *path)
{
	size_t length = strlen(path);

	return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Where a scan is: behind each opening bracket, how long the path to its object is; 0 and a mark
 * for arrays, within which nothing has a line. */
struct scan {
	char path[PATH_BYTES];
	size_t kept[MAX_DEPTH]; /* of path, per depth */
	bool is_array[MAX_DEPTH];
	int depth, arrays, line;
};

static const char *string_end(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/* A string is a key when a colon follows. */
static const char *take_string(struct scan *s, const char *at, json_t *lines)
{
	const char *end = string_end(at), *next = end + strspn(end, " \t\r\n");
	size_t length = (size_t)(end - at) >= 2 ? (size_t)(end - at) - 2 : 0, kept;

	if (*next != ':' || s->arrays > 0 || s->depth < 1 || s->depth >= MAX_DEPTH)
		return end;
	kept = s->kept[s->depth];
	if (kept + length + 2 > PATH_BYTES)
		return end;
	if (kept > 0)
		s->path[kept++] = '.';
	memcpy(s->path + kept, at + 1, length);
	s->path[kept + length] = '\0';
	json_object_set_new(lines, s->path, json_integer(s->line));
	return end;
}

static void open_bracket(struct scan *s, bool is_array)
{
	s->depth++;
	s->arrays += is_array;
	if (s->depth >= MAX_DEPTH)
		return;
	s->is_array[s->depth] = is_array;
	s->kept[s->depth] = s->depth == 1 ? 0 : strlen(s->path);
}

static void close_bracket(struct scan *s)
{
	if (s->depth > 0 && s->depth < MAX_DEPTH) {
		s->arrays -= s->is_array[s->depth];
		s->path[s->kept[s->depth]] = '\0';
	}
	s->depth--;
}

static void find_lines(const char *text, json_t *lines)
{
	struct scan s = { .line = 1 };

	for (const char *at = text; *at;) {
		if (*at == '"') {
			at = take_string(&s, at, lines);
			continue;
		}
		if (*at == '{' || *at == '[')
			open_bracket(&s, *at == '[');
		else if (*at == '}' || *at == ']')
			close_bracket(&s);
		s.line += *at++ == '\n';
	}
}

/* A member that is null is as good as none, in the layers of a model, too. */
static void drop_nulls(json_t *value)
{
	const char *name;
	json_t *item;
	size_t i;
	void *next;

	json_array_foreach(value, i, item) {
		drop_nulls(item);
	}
	json_object_foreach_safe(value, next, name, item) {
		if (json_is_null(item))
			json_object_del(value, name);
		else
			drop_nulls(item);
	}
}

/* --- other forms ------------------------------------------------------------------------------ */

/* toml gets section.name (a new reference), on the line of `from`, unless it has one. */
static void put(struct toml *toml, const char *section, const char *name, json_t *value,
		const char *from)
{
	json_t *table = json_object_get(toml->root, section);
	char path[PATH_BYTES];

	if (!table) {
		table = json_object();
		json_object_set_new(toml->root, section, table);
		json_object_set(toml->lines, section, json_object_get(toml->lines, from));
	}
	snprintf(path, sizeof(path), "%s.%s", section, name);
	if (!value || json_object_get(table, name)) {
		json_decref(value);
		return;
	}
	json_object_set_new(table, name, value);
	json_object_set(toml->lines, path, json_object_get(toml->lines, from));
}

/* The first value of that name in a tree of modules; borrowed. */
static json_t *find(json_t *tree, const char *name)
{
	json_t *found = json_object_get(tree, name), *value;
	const char *key;

	if (found)
		return found;
	json_object_foreach(tree, key, value) {
		found = find(value, name);
		if (found)
			return found;
	}
	return NULL;
}

static const char MODEL[] = "model_spec.model";

/* Of scaled rotary waves there are keys for Llama's, as Llama 3 has them. */
static int take_scaling(struct toml *toml, const json_t *rope, struct err *err)
{
	static const struct {
		const char *name;
		double ours;
	} usual[] = { { "low_freq_factor", 1 },
		      { "high_freq_factor", 4 },
		      { "original_max_position_embeddings", 8192 } };
	const char *scaling = js_str(rope, "scaling", "none");
	char what[128];

	if (strcmp(scaling, "none") == 0)
		return 0;
	if (strcmp(scaling, "llama") != 0) {
		snprintf(what, sizeof(what),
			 "rope.scaling = \"%.40s\" is not supported, \"none\" and \"llama\" are",
			 scaling);
		return keys_refuse(toml, MODEL, what, err);
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		if (js_real(rope, usual[i].name, usual[i].ours) == usual[i].ours)
			continue;
		snprintf(what, sizeof(what), "rope.%s must be %g", usual[i].name, usual[i].ours);
		return keys_refuse(toml, MODEL, what, err);
	}
	put(toml, "model", "rope_scaling_factor",
	    json_incref(json_object_get(rope, "scaling_factor")), MODEL);
	return 0;
}

static bool has_bias(json_t *tree)
{
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach(tree, i, value)
		if (has_bias(value))
			return true;
	json_object_foreach(tree, key, value)
		if ((strcmp(key, "bias") == 0 && json_is_true(value)) || has_bias(value))
			return true;
	return false;
}

/* What the modules of a llama3 or a qwen3 may say: sizes, and what changes nothing. */
static bool is_known_member(const char *name)
{
	static const char known[] =
		" attention attention_norm beta_fast beta_slow bias block_size dim "
		"elementwise_affine embedding_dim enable_weight_tying eps feed_forward "
		"ffn_norm head_dim high_freq_factor in_features inner_attention "
		"kernel_options layers lm_head low_freq_factor max_context_length "
		"max_seq_len n_heads n_kv_heads norm normalized_shape num_embeddings "
		"original_max_position_embeddings original_seq_len out_features "
		"param_init qk_norm qkv_linear rope rope_factor scaling scaling_factor "
		"sharding_config theta tok_embeddings truncate vocab_size w1 w2 w3 "
		"window_size wkv wo wq wqkv ";
	const char *at = known;
	size_t len = strlen(name);

	while (len > 0 && (at = strstr(at + 1, name)))
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

/* The first member that nobody here knows, of a model without its param_init; NULL. */
static const char *unknown_member(json_t *tree)
{
	const char *key, *found;
	json_t *value;
	size_t i;

	json_array_foreach(tree, i, value) {
		found = unknown_member(value);
		if (found)
			return found;
	}
	json_object_foreach(tree, key, value) {
		found = is_known_member(key) ? NULL : key;
		if (!found && strcmp(key, "kernel_options") != 0)
			found = unknown_member(value);
		if (found)
			return found;
	}
	return NULL;
}

/* How weights begin differs from layer to layer, and is not read. */
static void drop_inits(json_t *tree)
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_del(tree, "param_init");
	json_array_foreach(tree, i, value) {
		drop_inits(value);
	}
	json_object_foreach(tree, key, value) {
		drop_inits(value);
	}
}

/* Of attention's window the default alone, all that came before. */
static bool has_window(json_t *layer)
{
	json_t *window = json_object_get(find(layer, "inner_attention"), "window_size");

	return window && json_integer_value(json_array_get(window, 0)) != -1;
}

static int check_members(const struct toml *toml, json_t *model, struct err *err)
{
	json_t *layers = json_object_get(model, "layers"), *layer;
	const char *name;
	char what[256];
	size_t i;

	drop_inits(model);
	name = unknown_member(model);
	if (name) {
		snprintf(what, sizeof(what), "%.60s is not read from here%s", name,
			 strcmp(name, "rank") == 0 ? ": in a TOML file lora.rank has adapters"
						   : "");
		return keys_refuse(toml, MODEL, what, err);
	}
	json_array_foreach(layers, i, layer) {
		if (has_window(layer))
			return keys_refuse(toml, MODEL, "window_size is not supported", err);
		if (json_equal(layer, json_array_get(layers, 0)))
			continue;
		snprintf(what, sizeof(what),
			 "layers that are not all the same (%zu and 0) are not supported", i);
		return keys_refuse(toml, MODEL, what, err);
	}
	return 0;
}

/* What torchtitan's models may have, and ours of that name have not. */
static int check_parts(const struct toml *toml, const char *name, json_t *model, struct err *err)
{
	json_t *layers = json_object_get(model, "layers"), *layer;
	bool is_llama = strcmp(name, "llama3") == 0;
	size_t i;

	json_array_foreach(layers, i, layer) {
		if (json_object_get(layer, "moe"))
			return keys_refuse(toml, MODEL,
					   "moe is not read from here: in a TOML file "
					   "model.name = \"qwen3_moe\" has keys for experts",
					   err);
		if (is_llama && find(layer, "qk_norm"))
			return keys_refuse(toml, MODEL,
					   "qk_norm is not supported in llama3: qwen3 has it", err);
	}
	if (has_bias(model))
		return keys_refuse(toml, MODEL, "bias = true is not supported", err);
	/* a model of another name is refused for that */
	return is_llama || strcmp(name, "qwen3") == 0 ? check_members(toml, model, err) : 0;
}

/* Of the ways to compute attention those that have blocks or windows are given a mask by documents
 * there, whatever the file says. */
static bool masks_documents(json_t *layer)
{
	const json_t *way = find(layer, "inner_attention");

	return json_object_get(way, "block_size") || json_object_get(way, "window_size");
}

/* Modules that say their sizes; the first layer stands for all. */
static int take_modules(struct toml *toml, const char *name, json_t *model, struct err *err)
{
	static const struct {
		const char *in_layer, *ours;
	} sizes[] = { { "n_heads", "n_heads" },
		      { "n_kv_heads", "n_kv_heads" },
		      { "head_dim", "head_dim" },
		      { "theta", "rope_theta" } };
	json_t *layers = json_object_get(model, "layers"), *layer = json_array_get(layers, 0);
	json_t *w2 = json_object_get(find(layer, "feed_forward"), "w2");

	put(toml, "model", "dim", json_incref(json_object_get(model, "dim")), MODEL);
	put(toml, "model", "vocab_size", json_incref(json_object_get(model, "vocab_size")), MODEL);
	put(toml, "model", "n_layers", json_integer((json_int_t)json_array_size(layers)), MODEL);
	put(toml, "model", "tie_word_embeddings",
	    json_incref(json_object_get(model, "enable_weight_tying")), MODEL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		put(toml, "model", sizes[i].ours, json_incref(find(layer, sizes[i].in_layer)),
		    MODEL);
	put(toml, "model", "ffn_dim", json_incref(json_object_get(w2, "in_features")), MODEL);
	put(toml, "model", "norm_eps",
	    json_incref(json_object_get(json_object_get(layer, "ffn_norm"), "eps")), MODEL);
	if (masks_documents(layer))
		put(toml, "model", "inner_attention", json_true(), MODEL);
	return take_scaling(toml, find(layer, "rope"), err) ? -1
							    : check_parts(toml, name, model, err);
}

static int take_model(struct toml *toml, struct err *err)
{
	json_t *spec = json_incref(json_object_get(toml->root, "model_spec"));
	json_t *model = json_object_get(spec, "model");
	bool has_sizes = json_is_array(json_object_get(model, "layers"));
	int rc = 0;

	put(toml, "model", "name", json_incref(json_object_get(spec, "name")), "model_spec.name");
	if (has_sizes)
		rc = take_modules(toml, js_str(spec, "name", ""), model, err);
	else
		put(toml, "model", "flavor", json_incref(json_object_get(spec, "flavor")),
		    "model_spec.flavor");
	json_object_del(toml->root, "model_spec");
	json_decref(spec);
	return rc;
}

/* A batch in tokens is one in sequences of the longest context. */
static void take_tokens(struct toml *toml)
{
	static const struct {
		const char *theirs, *ours;
	} batches[] = { { "num_tokens_per_microbatch_per_dp_rank", "local_batch_size" },
			{ "num_tokens_per_train_step", "global_batch_size" } };
	json_t *training = json_object_get(toml->root, "training");
	json_int_t seq = js_int(training, "max_context_length", 0);

	if (seq < 1)
		return;
	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
		json_int_t tokens = js_int(training, batches[i].theirs, -1);
		char *from = xasprintf("training.%s", batches[i].theirs);
		if (tokens < 0 || tokens % seq == 0) {
			if (tokens > 0)
				put(toml, "training", batches[i].ours, json_integer(tokens / seq),
				    from);
			json_object_del(training, batches[i].theirs);
		}
		free(from);
	}
	put(toml, "training", "seq_len", json_integer(seq), "training.max_context_length");
	json_object_del(training, "max_context_length");
}

/* One group of all parameters is an optimizer as the TOML files have it; several are not ours. What
 * its words leave out is as PyTorch has it, not as torchtitan's TOML files do. */
static void take_groups(struct toml *toml)
{
	static const char *const names[] = { "lr", "eps", "weight_decay", "beta1", "beta2" };
	static const double usual[] = { 1e-3, 1e-8, 1e-2, 0.9, 0.999 };
	static const char from[] = "optimizer.param_groups";
	json_t *optimizer = json_object_get(toml->root, "optimizer");
	json_t *groups = json_object_get(optimizer, "param_groups");
	json_t *group = json_array_get(groups, 0),
	       *words = json_object_get(group, "optimizer_kwargs");
	json_t *betas = json_object_get(words, "betas"), *value;
	const char *word;

	if (json_array_size(groups) != 1 || strcmp(js_str(group, "pattern", ""), ".*") != 0)
		return;
	/* a word that has no key here: the group stays, and is refused */
	json_object_foreach(words, word, value) {
		bool is_known = strcmp(word, "betas") == 0;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			is_known = is_known || strcmp(word, names[i]) == 0;
		if (!is_known)
			return;
	}
	put(toml, "optimizer", "name", json_incref(json_object_get(group, "optimizer_name")), from);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put(toml, "optimizer", names[i], json_incref(json_object_get(words, names[i])),
		    from);
	put(toml, "optimizer", "beta1", json_incref(json_array_get(betas, 0)), from);
	put(toml, "optimizer", "beta2", json_incref(json_array_get(betas, 1)), from);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put(toml, "optimizer", names[i], json_real(usual[i]), from);
	json_object_del(optimizer, "param_groups");
}

int json_document_load(struct toml *out, const char *path, struct err *err)
{
	char *text = file_read(path, MAX_BYTES, NULL, err);
	json_error_t why;

	*out = (struct toml){ 0 };
	if (!text)
		return -1;
	out->root = json_loads(text, 0, &why);
	if (!json_is_object(out->root)) {
		if (out->root)
			err_set(err, ERR_USAGE, "%s:1: must be an object, { ... }", path);
		else
			err_set(err, ERR_USAGE, "%s:%d: %s", path, why.line, why.text);
		free(text);
		toml_clear(out);
		return -1;
	}
	out->file = xstrdup(path);
	out->lines = json_object();
	find_lines(text, out->lines);
	free(text);
	drop_nulls(out->root);
	if (json_object_get(out->root, "model_spec") && take_model(out, err)) {
		toml_clear(out);
		return -1;
	}
	take_tokens(out);
	take_groups(out);
	return 0;
}
