/* SPDX-License-Identifier: MIT */
/* keys.c - one table row per key is all that a program writes about its configuration; reading,
 * checking, explaining and printing documents follow from it here. What each type of key takes:
 * key_values.c. */
#include "common/config/keys.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/config/key_values.h"

enum { WHAT_MAX = KEY_WHAT_BYTES, PATH_MAX_BYTES = 256 };

static void path_of(const struct key *key, char out[PATH_MAX_BYTES])
{
	snprintf(out, PATH_MAX_BYTES, "%s%s%s", key->section, key->section[0] ? "." : "",
		 key->name);
}

int keys_refuse(const struct toml *toml, const char *path, const char *what, struct err *err)
{
	char where[TOML_WHERE_BYTES];

	return err_set(err, ERR_USAGE, "%s: %s", toml_where(toml, path, where), what);
}

/* --- reading a document ---------------------------------------------------------------------- */

/* A default is written as JSON, which TOML's numbers, booleans, strings and lists are, too; a
 * string may do without the quotes ("60s"). */
static json_t *fallback_value(const char *text)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

	return value ? value : json_string(text);
}

static int read_fallback(const struct key *key, void *out, struct err *err)
{
	char what[WHAT_MAX] = "";
	json_t *value;
	int rc;

	if (!key->fallback)
		return 0;
	value = fallback_value(key->fallback);
	rc = key_read(key, value, out, what);
	json_decref(value);
	if (rc < 0)
		err_set(err, ERR_INTERNAL, "default of %s.%s: %s", key->section, key->name, what);
	return rc;
}

/* The table `section` ("a.b"; "" is the document itself), NULL if it is not there. */
static const json_t *section_of(const struct toml *toml, const char *section, struct err *err)
{
	const json_t *table = toml->root;
	char path[PATH_MAX_BYTES];
	size_t end = 0;

	snprintf(path, sizeof(path), "%s", section);
	while (table && path[end]) {
		size_t start = end + (end > 0);

		end = start + strcspn(path + start, ".");
		char saved = path[end];

		path[end] = '\0';
		table = json_object_get(table, path + start);
		if (table && !json_is_object(table)) {
			keys_refuse(toml, path, "must be a section", err);
			return NULL;
		}
		path[end] = saved;
	}
	return table;
}

static int read_key(const struct key *key, const struct toml *toml, void *out, struct err *err)
{
	char path[PATH_MAX_BYTES], what[WHAT_MAX] = "";
	struct err broken = { 0 };
	const json_t *table = section_of(toml, key->section, &broken);
	const json_t *value = json_object_get(table, key->name);

	if (broken.code != ERR_NONE)
		return err_set(err, broken.code, "%s", broken.text);
	if (!value || key_read(key, value, out, what) == 0)
		return 0;
	path_of(key, path);
	return keys_refuse(toml, path, what, err);
}

int keys_read(const struct key *table, size_t count, const struct toml *toml, void *out,
	      struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = read_fallback(&table[i], out, err);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = read_key(&table[i], toml, out, err);
	if (rc < 0)
		keys_clear(table, count, out);
	return rc;
}

void keys_clear(const struct key *table, size_t count, void *out)
{
	for (size_t i = 0; i < count; i++)
		key_clear(&table[i], out);
}

/* --- unknown keys ---------------------------------------------------------------------------- */

struct unknown {
	const struct key *table;
	size_t count;
	const struct toml *toml;
	const char *const *ignored;
};

static bool is_ignored(const struct unknown *u, const char *path)
{
	for (size_t i = 0; u->ignored && u->ignored[i]; i++) {
		if (strcmp(u->ignored[i], path) == 0)
			return true;
	}
	return false;
}

/* `path` is a section of the table, or a part of the way to one. */
static bool is_section(const struct unknown *u, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < u->count; i++) {
		const char *section = u->table[i].section;

		if (strncmp(section, path, len) == 0 &&
		    (section[len] == '\0' || section[len] == '.'))
			return true;
	}
	return false;
}

static bool is_key(const struct unknown *u, const char *path)
{
	char known[PATH_MAX_BYTES];

	for (size_t i = 0; i < u->count; i++) {
		path_of(&u->table[i], known);
		if (strcmp(known, path) == 0)
			return true;
	}
	return false;
}

static int refuse_key(const struct unknown *u, const char *section, const char *name,
		      const char *path, struct err *err)
{
	const char **names = xcalloc(u->count, sizeof(names[0]));
	char what[WHAT_MAX];
	const char *guess;
	size_t n = 0;

	for (size_t i = 0; i < u->count; i++) {
		if (strcmp(u->table[i].section, section) == 0)
			names[n++] = u->table[i].name;
	}
	guess = nearest(name, names, n);
	free(names);
	if (guess)
		snprintf(what, sizeof(what), "unknown key; did you mean \"%s\"?", guess);
	else if (section[0])
		snprintf(what, sizeof(what), "unknown key in section [%s]", section);
	else
		snprintf(what, sizeof(what), "unknown key; it belongs into a section");
	return keys_refuse(u->toml, path, what, err);
}

static int refuse_section(const struct unknown *u, const char *path, struct err *err)
{
	const char **names = xcalloc(u->count, sizeof(names[0]));
	char what[WHAT_MAX];
	const char *guess;

	for (size_t i = 0; i < u->count; i++)
		names[i] = u->table[i].section;
	guess = nearest(path, names, u->count);
	free(names);
	if (guess)
		snprintf(what, sizeof(what), "unknown section; did you mean [%s]?", guess);
	else
		snprintf(what, sizeof(what), "unknown section");
	return keys_refuse(u->toml, path, what, err);
}

static int check_table(const struct unknown *u, json_t *table, const char *section, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(table, name, value) {
		char path[PATH_MAX_BYTES];
		int rc = 0;

		snprintf(path, sizeof(path), "%s%s%s", section, section[0] ? "." : "", name);
		if (is_ignored(u, path) || is_key(u, path))
			continue;
		if (is_section(u, path))
			rc = json_is_object(value)
				     ? check_table(u, value, path, err)
				     : keys_refuse(u->toml, path, "must be a section", err);
		else
			rc = json_is_object(value) ? refuse_section(u, path, err)
						   : refuse_key(u, section, name, path, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int keys_unknown(const struct key *table, size_t count, const struct toml *toml,
		 const char *const *ignored, struct err *err)
{
	const struct unknown u = { table, count, toml, ignored };

	return check_table(&u, toml->root, "", err);
}

/* --- printing -------------------------------------------------------------------------------- */

static void print_section(const struct key *table, size_t count, const char *section,
			  const void *values, FILE *to)
{
	struct toml one = { .root = json_object() };
	char *text;

	for (size_t i = 0; i < count; i++) {
		json_t *value;

		if (strcmp(table[i].section, section) != 0)
			continue;
		value = key_json(&table[i], values);
		if (value)
			json_object_set_new(one.root, table[i].name, value);
	}
	text = toml_print(&one);
	if (section[0])
		fprintf(to, "[%s]\n", section);
	fputs(text, to);
	free(text);
	toml_clear(&one);
}

void keys_print(const struct key *table, size_t count, const void *values, FILE *to)
{
	for (size_t i = 0; i < count; i++) {
		size_t first = 0;

		while (strcmp(table[first].section, table[i].section) != 0)
			first++;
		if (first != i)
			continue;
		if (i > 0)
			fputc('\n', to);
		print_section(table, count, table[i].section, values, to);
	}
}
