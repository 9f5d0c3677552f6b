/* SPDX-License-Identifier: MIT */
/* diff.c - lbctl diff: two runs side by side: settings, packages, and the code that each is made
 * of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/toml.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/code/code.h"
#include "ctl/code/git.h"
#include "ctl/team/ask.h"

enum { SIDES = 2, PATCH_MAX_BYTES = 1024 * 1024 };

/* --- one side --------------------------------------------------------------------------------- */

struct side {
	const char *name; /* as it was typed */
	json_t *run;      /* what lbd, or its export, tells of it */
	json_t *settings; /* spec.toml: "section.key" → value */
	json_t *code;     /* {} when the run has none */
};

static int read_side(struct ctl *ctl, const char *name, struct side *side, struct err *err)
{
	struct toml toml = { 0 };
	const char *dir;
	char *spec;
	int rc;

	*side = (struct side){ .name = name };
	side->run = ask_about(ctl, VERB_STATUS, name, json_object(), err);
	dir = js_str(side->run, "dir", NULL);
	if (!side->run)
		return -1;
	if (!dir)
		return err_set(err, ERR_NOT_FOUND, "%s: its folder is not told", name);
	side->settings = json_object();
	spec = path_join("%s/spec.toml", dir);
	rc = toml_load(&toml, spec, err);
	if (rc == 0)
		toml_flatten(side->settings, "", toml.root);
	json_object_del(side->settings, "run.name"); /* differs always */
	toml_clear(&toml);
	free(spec);
	side->code = code_load(dir, NULL);
	if (!side->code)
		side->code = json_object();
	return rc;
}

static void clear_side(struct side *side)
{
	json_decref(side->run);
	json_decref(side->settings);
	json_decref(side->code);
}

/* --- what differs ----------------------------------------------------------------------------- */

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

/* The tree that a run was made of, from its commit and its patch, in this repository. */
static int tree_of(const struct git *g, const struct side *side, char id[GIT_ID_BYTES],
		   struct err *err)
{
	char *patch = js_bytes_take(json_object_get(side->code, "patch"));
	const char *commit = js_str(side->code, "commit", NULL);
	int rc;

	if (!commit)
		rc = err_set(err, ERR_NOT_FOUND, "%s: was submitted before the first commit",
			     side->name);
	else if (!patch && js_int(side->code, "changed_files", 0) > 0)
		rc = err_set(err, ERR_NOT_FOUND,
			     "%s: its changes were not kept, or are not for "
			     "you to read%s%s",
			     side->name, json_object_get(side->code, "why") ? ": " : "",
			     js_str(side->code, "why", ""));
	else
		rc = git_tree_of_patch(g, commit, patch ? patch : "", id, err);
	free(patch);
	return rc;
}

/* How the code differs, as a patch, owned; "" when not at all; NULL with err. */
static char *code_patch(const struct side sides[SIDES], struct err *err)
{
	char *root = js_bytes_take(json_object_get(sides[0].code, "root")), *patch = NULL;
	char trees[SIDES][GIT_ID_BYTES];
	struct git g = { 0 };

	if (!root || !json_object_get(sides[1].code, "root"))
		err_set(err, ERR_NOT_FOUND, "%s was submitted from no git repository",
			sides[root ? 1 : 0].name);
	else if (git_open(&g, root, err) == 0 && tree_of(&g, &sides[0], trees[0], err) == 0 &&
		 tree_of(&g, &sides[1], trees[1], err) == 0)
		patch = git_patch(&g, trees[0], trees[1], PATCH_MAX_BYTES, err);
	git_close(&g);
	free(root);
	return patch;
}

/* --- showing ---------------------------------------------------------------------------------- */

static char *value_text(const json_t *value, const struct style *style)
{
	char *text, *clean;

	if (json_is_null(value))
		return xstrdup("-");
	text = json_is_string(value) ? js_bytes_take(value) : json_dumps(value, JSON_ENCODE_ANY);
	clean = clean_copy(text, style);
	free(text);
	return clean;
}

static void show_differences(const struct ctl *ctl, const char *title, json_t *differ)
{
	const char *key;
	json_t *pair;

	if (json_object_size(differ) == 0)
		return;
	printf("%s\n", title);
	json_object_foreach(differ, key, pair) {
		char *name = clean_copy(key, &ctl->out);
		char *a = value_text(json_array_get(pair, 0), &ctl->out);
		char *b = value_text(json_array_get(pair, 1), &ctl->out);

		printf("  %s: %s -> %s\n", name, a, b);
		free(name);
		free(a);
		free(b);
	}
}

static void show(const struct ctl *ctl, const struct side sides[SIDES], json_t *answer,
		 const char *patch, const struct err *why)
{
	bool is_same = patch && !patch[0];

	for (int i = 0; i < SIDES; i++) {
		char *text = code_text(sides[i].code), *clean = clean_copy(text, &ctl->out);

		printf("%s %s  code %s\n", i == 0 ? "a" : "b", sides[i].name, clean);
		free(text);
		free(clean);
	}
	show_differences(ctl, "settings", json_object_get(answer, "settings"));
	show_differences(ctl, "packages", json_object_get(answer, "packages"));
	if (!patch)
		printf("code: cannot be compared: %s\n", why->text);
	else if (is_same)
		printf("code: the same\n");
	else
		print_lines("", patch, &ctl->out);
}

int diff_run(struct ctl *ctl, struct err *err)
{
	struct side sides[SIDES] = { 0 };
	struct err why = { 0 };
	json_t *answer, *of_a, *of_b;
	char *patch;
	int rc = 0;

	for (int i = 0; rc == 0 && i < SIDES; i++)
		rc = read_side(ctl, ctl->operands.words[i], &sides[i], err);
	if (rc == 0) {
		patch = code_patch(sides, &why);
		of_a = versions(sides[0].code);
		of_b = versions(sides[1].code);
		answer = json_pack("{s:o,s:o}", "settings",
				   differences(sides[0].settings, sides[1].settings), "packages",
				   differences(of_a, of_b));
		if (ctl->options.json) {
			json_object_set_new(answer, "patch", patch ? js_bytes(patch) : json_null());
			if (!patch)
				js_set_str(answer, "why", why.text);
			print_json(json_incref(answer));
		} else {
			show(ctl, sides, answer, patch, &why);
		}
		json_decref(of_a);
		json_decref(of_b);
		json_decref(answer);
		free(patch);
	}
	for (int i = 0; i < SIDES; i++)
		clear_side(&sides[i]);
	return rc;
}
