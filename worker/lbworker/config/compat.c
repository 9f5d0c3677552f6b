/* SPDX-License-Identifier: MIT */
/* compat.c - takes spellings of torchtitan out of a document, or puts ours in their place
 * (compat_rows.h). */
#include "worker/lbworker/config/compat.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbworker/config/compat_quantize.h"
#include "worker/lbworker/config/compat_rows.h"

/* --- paths in the document -------------------------------------------------------------------- */

static void drop(struct toml *toml, const char *path)
{
	const char *name;
	json_t *table = toml_table(toml, path, &name);

	json_object_del(table, name);
}

/* A section that has lost all its keys must not be taken for an unknown one. */
static void drop_empty(json_t *table)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(table, next, name, value) {
		if (!json_is_object(value))
			continue;
		drop_empty(value);
		if (json_object_size(value) == 0)
			json_object_del(table, name);
	}
}

/* All keys below `table` as paths; the list owns its strings. */
static void list_paths(json_t *table, const char *section, struct key_strings *list)
{
	const char *name;
	json_t *value;

	json_object_foreach(table, name, value) {
		char *path = xasprintf("%s%s%s", section, section[0] ? "." : "", name);
		if (json_is_object(value)) {
			list_paths(value, path, list);
			free(path);
			continue;
		}
		list->items = xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
		list->items[list->count++] = path;
	}
}

/* --- one key ------------------------------------------------------------------------------ */

static bool is_ours(const struct compat *c, const char *path)
{
	for (size_t i = 0; i < c->count; i++) {
		size_t len = strlen(c->keys[i].section);
		if (strncmp(path, c->keys[i].section, len) == 0 && path[len] == '.' &&
		    strcmp(path + len + 1, c->keys[i].name) == 0)
			return true;
	}
	return false;
}

static bool is_foreign(const struct compat *c, const char *path)
{
	size_t len = strcspn(path, ".");

	for (size_t i = 0; c->foreign[i]; i++)
		if (strlen(c->foreign[i]) == len && strncmp(path, c->foreign[i], len) == 0)
			return true;
	return false;
}

static bool matches(const char *pattern, const char *path)
{
	size_t len = strlen(pattern);

	if (len > 1 && pattern[len - 1] == '*')
		return strncmp(pattern, path, len - 1) == 0;
	return strcmp(pattern, path) == 0;
}

static int neutral_row(const char *path)
{
	for (size_t i = 0; i < compat_neutral_count; i++)
		if (matches(compat_neutral[i].key, path))
			return (int)i;
	return -1;
}

/* `text` is one of the lines of `values`. */
static bool is_among(const char *values, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = values; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strncmp(at, text, len) == 0 && (at[len] == '\n' || at[len] == '\0'))
			return true;
	return false;
}

static bool is_in_section(const char *path, const char *section)
{
	size_t len = strlen(section);

	return strncmp(path, section, len) == 0 && path[len] == '.';
}

/* Somebody's section: ours, torchtitan's, or one that it had. */
static bool is_known_section(const struct compat *c, const char *section)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->keys[i].section, section) == 0 ||
		    is_in_section(c->keys[i].section, section))
			return true;
	for (size_t i = 0; i < compat_neutral_count; i++)
		if (is_in_section(compat_neutral[i].key, section))
			return true;
	for (size_t i = 0; i < compat_renamed_count; i++)
		if (is_in_section(compat_renamed[i].from, section))
			return true;
	return false;
}

/* The nearest of all keys that `section` can have; NULL. */
static const char *guess_key(const struct compat *c, const char *section, const char *name)
{
	const char **names = xcalloc(c->count + compat_neutral_count + compat_renamed_count,
				     sizeof(*names));
	size_t count = 0, skip = strlen(section) + 1;

	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->keys[i].section, section) == 0)
			names[count++] = c->keys[i].name;
	for (size_t i = 0; i < compat_neutral_count; i++)
		if (is_in_section(compat_neutral[i].key, section) &&
		    !strchr(compat_neutral[i].key, '*'))
			names[count++] = compat_neutral[i].key + skip;
	for (size_t i = 0; i < compat_renamed_count; i++)
		if (is_in_section(compat_renamed[i].from, section) &&
		    !strchr(compat_renamed[i].from, '*'))
			names[count++] = compat_renamed[i].from + skip;
	const char *guess = nearest(name, names, count);
	free(names);
	return guess;
}

/* An unknown key is refused alone, an unknown section at once. */
static int refuse_unknown(const struct compat *c, struct toml *toml, const char *path,
			  struct err *err)
{
	const char *dot = strrchr(path, '.');
	char *section = xstrndup(path, dot ? (size_t)(dot - path) : 0);
	char *first = xstrndup(path, strcspn(path, ".")), *text;

	if (!dot) {
		text = xstrdup("unknown key; it belongs into a section");
		keys_refuse(toml, path, text, err);
		drop(toml, path);
	} else if (!is_known_section(c, section) && !is_known_section(c, first)) {
		const struct toml all = { .file = toml->file,
					  .lines = toml->lines,
					  .root = json_object(),
					  .option = toml->option };
		json_object_set(all.root, first, json_object_get(toml->root, first));
		keys_unknown(c->keys, c->count, &all, c->foreign, err); /* knows the nearest */
		json_decref(all.root);
		text = NULL;
		json_object_del(toml->root, first);
	} else {
		const char *guess = guess_key(c, section, dot + 1);
		text = guess ? xasprintf("unknown key; did you mean \"%s\"?", guess)
			     : xasprintf("unknown key in section [%s]", section);
		keys_refuse(toml, path, text, err);
		drop(toml, path);
	}
	free(text);
	free(first);
	free(section);
	return -1;
}

static void ignore(const struct compat *c, struct toml *toml, const char *path, const char *why)
{
	char where[TOML_WHERE_BYTES];

	if (c->ignored)
		fprintf(c->ignored, "%s: ignored, %s\n", toml_where(toml, path, where), why);
	drop(toml, path);
}

static int refuse(struct toml *toml, const char *path, const char *text, const char *allowed,
		  struct err *err)
{
	char where[TOML_WHERE_BYTES];

	err_set(err, ERR_USAGE, "%s: %s is not supported, only %.*s; --lenient goes on without it",
		toml_where(toml, path, where), text, (int)strcspn(allowed, "\n"), allowed);
	drop(toml, path);
	return -1;
}

/* A key of the table `neutral`. */
static int take_neutral(const struct compat *c, struct toml *toml, const char *path, int row,
			struct err *err)
{
	const char *values = compat_neutral[row].values;
	char *text = json_dumps(toml_value(toml, path),
				JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
	int rc = 0;

	if (!values || (text && is_among(values, text)))
		drop(toml, path);
	else if (c->lenient)
		ignore(c, toml, path, "it is not supported");
	else
		rc = refuse(toml, path, text ? text : "this", values, err);
	free(text);
	return rc;
}

/* Two spellings must say the same, but an option counts over a file. */
static int settle(const struct compat *c, struct toml *toml, const char *from, const char *to,
		  struct err *err)
{
	bool is_option = toml_line(toml, from) == TOML_ASSIGNED;
	json_t *earlier = toml_value(toml, to);
	char *what;
	int rc = 0;

	if (earlier && is_option != (toml_line(toml, to) == TOML_ASSIGNED)) {
		if (is_option)
			drop(toml, to);
	} else if (earlier && !json_equal(earlier, toml_value(toml, from))) {
		what = xasprintf("is %s by another name, which says otherwise", to);
		if (c->lenient)
			ignore(c, toml, from, what);
		else
			rc = keys_refuse(toml, from, what, err);
		free(what);
	}
	return rc;
}

/* Moves the value, and its line. */
static int rename_key(const struct compat *c, struct toml *toml, const char *from, const char *to,
		      struct err *err)
{
	json_t *value = json_incref(toml_value(toml, from));
	int rc = settle(c, toml, from, to, err);
	const char *name;
	char *section = xstrndup(to, strcspn(to, "."));

	if (!json_object_get(toml->root, section))
		json_object_set_new(toml->root, section, json_object());
	json_t *table = toml_table(toml, to, &name);
	if (json_is_object(table) && !json_object_get(table, name)) {
		json_object_set(table, name, value);
		json_object_set(toml->lines, to, json_object_get(toml->lines, from));
		if (!json_object_get(toml->lines, section))
			json_object_set(toml->lines, section, json_object_get(toml->lines, from));
	}
	json_decref(value);
	drop(toml, from);
	free(section);
	return rc;
}

/* What `path` is called now; NULL: the same. The caller frees. */
static char *new_name(const char *path)
{
	for (size_t i = 0; i < compat_renamed_count; i++) {
		const char *from = compat_renamed[i].from, *to = compat_renamed[i].to;
		size_t kept = strcspn(from, "*");
		if (!matches(from, path))
			continue;
		return from[kept] ? xasprintf("%.*s%s", (int)strcspn(to, "*"), to, path + kept)
				  : xstrdup(to);
	}
	return NULL;
}

/* *theirs: set for a key that only a file of torchtitan has. */
static int take_key(const struct compat *c, struct toml *toml, const char *path, bool *theirs,
		    struct err *err)
{
	if (is_ours(c, path) || is_foreign(c, path))
		return 0;
	char *to = new_name(path);
	if (to) {
		int rc = rename_key(c, toml, path, to, err);
		*theirs = *theirs || strncmp(path, "model.", 6) != 0;
		if (rc == 0 && toml_value(toml, to))
			rc = take_key(c, toml, to, theirs, err);
		free(to);
		return rc;
	}
	int row = neutral_row(path);
	if (row >= 0) {
		*theirs = true;
		return take_neutral(c, toml, path, row, err);
	}
	if (!c->lenient)
		return refuse_unknown(c, toml, path, err);
	ignore(c, toml, path, "it is not known");
	return 0;
}

/* --- values ------------------------------------------------------------------------------- */

/* Families by the names of torchtitan. Llama 2 came in other sizes than Llama 3. */
static bool other_family(json_t *model)
{
	const char *name = json_string_value(json_object_get(model, "name"));
	const char *flavor = json_string_value(json_object_get(model, "flavor"));

	/* its first files said "llama" for Llama 2 */
	if (name && flavor && strcmp(name, "llama") == 0 &&
	    (strcmp(flavor, "7B") == 0 || strcmp(flavor, "13B") == 0))
		name = "llama2";
	if (!name || (strcmp(name, "llama2") != 0 && strcmp(name, "llama3") != 0))
		return false;
	if (flavor && strcmp(name, "llama2") == 0 && strcmp(flavor, "debugmodel") != 0) {
		char *ours = xasprintf("2-%s", flavor);
		json_object_set_new(model, "flavor", json_string(ours));
		free(ours);
	}
	json_object_set_new(model, "name", json_string("llama"));
	return true;
}

/* A number where a rule may stand as well. */
static void other_std(json_t *model)
{
	const json_t *std = json_object_get(model, "init_std");
	char text[32];

	if (!json_is_number(std))
		return;
	snprintf(text, sizeof(text), "%.15g", json_number_value(std));
	json_object_set_new(model, "init_std", json_string(text));
}

/* Moments of fewer bits are asked for by the name of what computes them. */
static void other_moments(struct toml *toml)
{
	static const char from[] = "optimizer.implementation", to[] = "optimizer.moments";
	json_t *optimizer = json_object_get(toml->root, "optimizer");

	if (strcmp(js_str(optimizer, "implementation", ""), "fused_opt_states_bf16") != 0 ||
	    json_object_get(optimizer, "moments"))
		return;
	json_object_set_new(optimizer, "moments", json_string("bfloat16"));
	json_object_set(toml->lines, to, json_object_get(toml->lines, from));
}

bool compat_apply(const struct compat *c, struct toml *toml, struct refusals *refusals)
{
	struct key_strings paths = { 0 };
	struct err err = { 0 };
	bool theirs = compat_quantize(toml, c->ignored);

	other_moments(toml);
	list_paths(toml->root, "", &paths);
	for (size_t i = 0; i < paths.count; i++) {
		const char *path = paths.items[i];
		int rc = toml_value(toml, path) ? take_key(c, toml, path, &theirs, &err) : 0;
		refusals_add(refusals, rc, &err);
		free(paths.items[i]);
	}
	free(paths.items);
	drop_empty(toml->root);
	if (other_family(json_object_get(toml->root, "model")))
		theirs = true;
	other_std(json_object_get(toml->root, "model"));
	return theirs;
}
