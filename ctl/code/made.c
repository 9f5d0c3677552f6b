/* SPDX-License-Identifier: MIT */
/* made.c - settings by their keys, packages by their names, code by the trees that git makes of a
 * commit and a patch. */
#include "ctl/code/made.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/toml.h"
#include "ctl/code/code.h"
#include "ctl/code/git.h"

int made_read(struct made *made, const char *name, const char *run_dir, struct err *err)
{
	char *spec = path_join("%s/spec.toml", run_dir);
	struct toml toml = { 0 };
	int rc = toml_load(&toml, spec, err);

	*made = (struct made){ .name = name, .settings = json_object() };
	if (rc == 0)
		toml_flatten(made->settings, "", toml.root);
	json_object_del(made->settings, "run.name");
	toml_clear(&toml);
	free(spec);
	made->code = code_load(run_dir, NULL);
	if (!made->code)
		made->code = json_object();
	return rc;
}

void made_clear(struct made *made)
{
	json_decref(made->settings);
	json_decref(made->code);
	*made = (struct made){ 0 };
}

/* {"key":[a,b]} of what two objects have otherwise; null: not at all. */
static json_t *differences(json_t *a, json_t *b)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach(a, key, value) {
		json_t *other = json_object_get(b, key);

		if (!json_equal(value, other))
			json_object_set_new(out, key,
					    json_pack("[O,o]", value,
						      other ? json_incref(other) : json_null()));
	}
	json_object_foreach(b, key, value) {
		if (!json_object_get(a, key))
			json_object_set_new(out, key, json_pack("[n,O]", value));
	}
	return out;
}

/* "torch-2.3.0" → {"torch": "2.3.0"} */
static json_t *versions(const json_t *code)
{
	json_t *out = json_object(), *item;
	size_t i;

	json_array_foreach(json_object_get(code, "packages"), i, item) {
		const char *text = json_string_value(item),
			   *dash = text ? strrchr(text, '-') : NULL;
		char *name = dash ? xstrndup(text, (size_t)(dash - text)) : NULL;

		if (name)
			json_object_set_new(out, name, json_string(dash + 1));
		free(name);
	}
	return out;
}

json_t *made_differences(const struct made *a, const struct made *b)
{
	json_t *of_a = versions(a->code), *of_b = versions(b->code);
	json_t *out = json_pack("{s:o,s:o}", "settings", differences(a->settings, b->settings),
				"packages", differences(of_a, of_b));

	json_decref(of_a);
	json_decref(of_b);
	return out;
}

/* The tree that a run was made of, from its commit and its patch, in this repository. */
static int tree_of(const struct git *g, const struct made *made, char id[GIT_ID_BYTES],
		   struct err *err)
{
	char *patch = js_bytes_take(json_object_get(made->code, "patch"));
	const char *commit = js_str(made->code, "commit", NULL);
	int rc;

	if (!commit)
		rc = err_set(err, ERR_NOT_FOUND, "%s: was submitted before the first commit",
			     made->name);
	else if (!patch && js_int(made->code, "changed_files", 0) > 0)
		rc = err_set(err, ERR_NOT_FOUND,
			     "%s: its changes were not kept, or are not for "
			     "you to read%s%s",
			     made->name, json_object_get(made->code, "why") ? ": " : "",
			     js_str(made->code, "why", ""));
	else
		rc = git_tree_of_patch(g, commit, patch ? patch : "", id, err);
	free(patch);
	return rc;
}

char *made_patch(const struct made *a, const struct made *b, size_t max_bytes, struct err *err)
{
	char *root = js_bytes_take(json_object_get(a->code, "root")), *patch = NULL;
	char tree_a[GIT_ID_BYTES], tree_b[GIT_ID_BYTES];
	struct git g = { 0 };

	if (!root || !json_object_get(b->code, "root"))
		err_set(err, ERR_NOT_FOUND, "%s was submitted from no git repository",
			root ? b->name : a->name);
	else if (git_open(&g, root, err) == 0 && tree_of(&g, a, tree_a, err) == 0 &&
		 tree_of(&g, b, tree_b, err) == 0)
		patch = git_patch(&g, tree_a, tree_b, max_bytes, err);
	git_close(&g);
	free(root);
	return patch;
}
