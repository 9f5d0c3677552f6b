/* SPDX-License-Identifier: MIT */
/* compare.c - lays the specs of a group side by side and keeps the keys in which they differ. */
#include "daemon/runs/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/toml.h"
#include "daemon/runs/views.h"

enum { MAX_RUNS = 1000 };

struct comparison {
	struct ledger *ledger;
	const char *group;
	json_t *runs; /* newest first */
	int64_t ids[MAX_RUNS];
	struct err *err;
};

static int add_run(const struct ledger_run *run, void *arg)
{
	struct comparison *c = arg;
	size_t at = json_array_size(c->runs);
	json_t *o;

	if (strcmp(c->group, run->run_group) != 0 || at == MAX_RUNS)
		return 0;
	c->ids[at] = run->id;
	o = view_run(c->ledger, run, false, c->err);
	if (!o)
		return -1;
	json_array_append_new(c->runs, o);
	return 0;
}

/* What a sweep filled into the command comes first, by its own name, and in place of the
 * command. */
static void add_swept(json_t *out, json_t *root)
{
	json_t *run = json_object_get(root, "run"), *swept = json_object_get(run, "sweep"), *word;
	size_t i;

	json_array_foreach(swept, i, word) {
		const char *text = json_string_value(word),
			   *value = text ? strchr(text, '=') : NULL;
		char *key = value ? xstrndup(text, (size_t)(value - text)) : NULL;

		if (key)
			json_object_set_new(out, key, json_string(value + 1));
		free(key);
	}
	if (json_array_size(swept) == 0)
		return;
	json_object_del(run, "command");
	json_object_del(run, "arguments");
	json_object_del(run, "sweep");
}

/* All settings of a run; those of one whose spec cannot be read are not known: none. */
static json_t *settings_of(const json_t *run)
{
	char *path = path_join("%s/spec.toml", js_str(run, "dir", ""));
	json_t *settings = json_object();
	struct toml toml = { 0 };

	if (toml_load(&toml, path, NULL) == 0) {
		add_swept(settings, toml.root);
		toml_flatten(settings, "", toml.root);
		json_object_del(settings, "run.name");
	}
	toml_clear(&toml);
	free(path);
	return settings;
}

static bool differs(const json_t *all, const char *key)
{
	const json_t *first = json_object_get(json_array_get(all, 0), key), *settings;
	size_t i;

	json_array_foreach(all, i, settings) {
		const json_t *value = json_object_get(settings, key);

		if (!value != !first || (value && !json_equal(value, first)))
			return true;
	}
	return false;
}

/* In the order in which the files name them. */
static json_t *differing_keys(json_t *all)
{
	json_t *keys = json_array(), *seen = json_object(), *settings, *value;
	const char *key;
	size_t i;

	json_array_foreach(all, i, settings) {
		json_object_foreach(settings, key, value) {
			if (json_object_get(seen, key))
				continue;
			json_object_set_new(seen, key, json_true());
			if (differs(all, key))
				json_array_append_new(keys, json_string(key));
		}
	}
	json_decref(seen);
	return keys;
}

static json_t *only(const json_t *settings, const json_t *keys)
{
	json_t *out = json_object(), *key;
	size_t i;

	json_array_foreach(keys, i, key) {
		json_t *value = json_object_get(settings, json_string_value(key));

		json_object_set(out, json_string_value(key), value ? value : json_null());
	}
	return out;
}

/* Oldest first: in the order of their submission. */
static json_t *view(struct comparison *c)
{
	json_t *all = json_array(), *rows = json_array(), *keys;
	size_t count = json_array_size(c->runs);

	for (size_t i = 0; i < count; i++)
		json_array_append_new(all, settings_of(json_array_get(c->runs, i)));
	keys = differing_keys(all);
	for (size_t i = count; i-- > 0;) {
		json_t *row = json_array_get(c->runs, i);
		double least = NAN;

		if (ledger_metric_least_loss(c->ledger, c->ids[i], &least, c->err) < 0)
			break;
		js_set_real(row, "min_loss", least);
		json_object_set_new(row, "settings", only(json_array_get(all, i), keys));
		json_array_append(rows, row);
	}
	json_decref(all);
	return json_pack("{s:s, s:o, s:o}", "group", c->group, "keys", keys, "runs", rows);
}

json_t *compare_answer(struct request *r, struct err *err)
{
	struct comparison *c = xcalloc(1, sizeof(*c));
	json_t *o = NULL;

	c->ledger = r->lbd->ledger;
	c->group = js_str(r->args, "group", "");
	c->runs = json_array();
	c->err = err;
	if (ledger_run_each(c->ledger, false, add_run, c, err) == 0) {
		if (json_array_size(c->runs) > 0)
			o = view(c);
		else
			err_set(err, ERR_NOT_FOUND, "%.64s: there is no run of this group",
				c->group);
	}
	if (err->code != ERR_NONE) {
		json_decref(o);
		o = NULL;
	}
	json_decref(c->runs);
	free(c);
	return o;
}
