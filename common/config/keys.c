/* SPDX-License-Identifier: MIT */
/* keys.c - one table row per key is all that a program writes about its configuration; reading,
 * checking, explaining and printing follow from it here. */
#include "common/config/keys.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/bytes.h"
#include "common/base/mem.h"

enum { WHAT_MAX = 320, PATH_MAX_BYTES = 256 };

/* Beyond this a maximum is only a guard against overflow and not worth telling people. */
static const double untold_max = 1e15;

static void *field_of(const struct key *key, void *out)
{
	return (char *)out + key->offset;
}

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

/* --- one value ------------------------------------------------------------------------------- */

static bool in_range(const struct key *key, double value)
{
	return (key->min == 0 && key->max == 0) || (value >= key->min && value <= key->max);
}

static void say_number(const struct key *key, const char *kind, char what[WHAT_MAX])
{
	if (key->min == 0 && key->max == 0)
		snprintf(what, WHAT_MAX, "must be %s", kind);
	else if (key->max >= untold_max)
		snprintf(what, WHAT_MAX, "must be %s of at least %.15g", kind, key->min);
	else
		snprintf(what, WHAT_MAX, "must be %s from %.15g to %.15g", kind, key->min,
			 key->max);
}

static int read_bool(const struct key *key, const json_t *value, void *field, char what[WHAT_MAX])
{
	(void)key;
	snprintf(what, WHAT_MAX, "must be true or false");
	if (!json_is_boolean(value))
		return -1;
	*(bool *)field = json_is_true(value);
	return 0;
}

static int read_int(const struct key *key, const json_t *value, void *field, char what[WHAT_MAX])
{
	say_number(key, "an integer", what);
	if (!json_is_integer(value) || !in_range(key, (double)json_integer_value(value)))
		return -1;
	*(int64_t *)field = json_integer_value(value);
	return 0;
}

static int read_real(const struct key *key, const json_t *value, void *field, char what[WHAT_MAX])
{
	say_number(key, "a number", what);
	if (!json_is_number(value) || !in_range(key, json_number_value(value)))
		return -1;
	*(double *)field = json_number_value(value);
	return 0;
}

static int read_string(const struct key *key, const json_t *value, void *field, char what[WHAT_MAX])
{
	char **text = field;

	(void)key;
	snprintf(what, WHAT_MAX, "must be a string in quotes");
	if (!json_is_string(value) && !json_is_integer(value))
		return -1;
	free(*text);
	/* `--set run.name=7` reads as an integer, but only the string "7" can be meant. */
	*text = json_is_string(value) ? xstrdup(json_string_value(value))
				      : xasprintf("%lld", (long long)json_integer_value(value));
	return 0;
}

/* The index of `word` in "a|b|c", -1 if it is none of them. */
static int choice_index(const char *choices, const char *word)
{
	size_t len = strlen(word);
	int index = 0;

	for (const char *at = choices; at; index++) {
		size_t part = strcspn(at, "|");

		if (part == len && strncmp(at, word, len) == 0)
			return index;
		at = at[part] ? at + part + 1 : NULL;
	}
	return -1;
}

static int read_enum(const struct key *key, const json_t *value, void *field, char what[WHAT_MAX])
{
	const char *flag = json_is_true(value) ? "true" : json_is_false(value) ? "false" : NULL;
	const char *word = flag ? flag : json_string_value(value);
	int index = word ? choice_index(key->choices, word) : -1;
	size_t len = 0;

	snprintf(what, WHAT_MAX, "must be one of \"");
	for (const char *c = key->choices; *c && (len = strlen(what)) < WHAT_MAX - 8; c++)
		snprintf(what + len, WHAT_MAX - len, *c == '|' ? "\", \"" : "%c", *c);
	len = strlen(what);
	snprintf(what + len, WHAT_MAX - len, "\"");
	if (index < 0)
		return -1;
	*(int *)field = index;
	return 0;
}

/* A duration as TOML text that reads back the same. */
static const char *duration_exact(int64_t ms, char out[64])
{
	static const struct {
		int64_t ms;
		const char *name;
	} units[] = {
		{ 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" }
	};
	size_t len = 0;

	snprintf(out, 64, "0s");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		int64_t n = ms / units[i].ms;

		if (n > 0)
			len += (size_t)snprintf(out + len, 64 - len, "%lld%s", (long long)n,
						units[i].name);
		ms %= units[i].ms;
	}
	return out;
}

static int read_duration(const struct key *key, const json_t *value, void *field,
			 char what[WHAT_MAX])
{
	char low[64], high[64];
	int64_t ms = 0;
	double seconds = json_number_value(value);

	snprintf(what, WHAT_MAX,
		 "must be a number of seconds or a duration like \"90s\", \"5m\", \"1h30m\"");
	if (json_is_string(value)) {
		if (duration_parse(json_string_value(value), &ms, NULL) < 0)
			return -1;
	} else if (json_is_number(value) && seconds >= 0 && seconds < 4e9) {
		ms = (int64_t)(seconds * 1000 + 0.5);
	} else {
		return -1;
	}
	if (!in_range(key, (double)ms)) {
		snprintf(what, WHAT_MAX, "must be a duration from %s to %s",
			 duration_exact((int64_t)key->min, low),
			 duration_exact((int64_t)key->max, high));
		return -1;
	}
	*(int64_t *)field = ms;
	return 0;
}

static void free_strings(struct key_strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct key_strings){ 0 };
}

static int read_strings(const struct key *key, const json_t *value, void *field,
			char what[WHAT_MAX])
{
	struct key_strings *list = field;
	const json_t *item;
	size_t i;

	(void)key;
	snprintf(what, WHAT_MAX, "must be a list of strings, like [\"a\", \"b\"]");
	if (!json_is_array(value))
		return -1;
	free_strings(list);
	list->items = xcalloc(json_array_size(value) + 1, sizeof(list->items[0]));
	json_array_foreach(value, i, item) {
		char *text = js_bytes_take(item); /* {hex = "ff"}: bytes that are no UTF-8 */

		if (text == NULL)
			return -1;
		list->items[list->count++] = text;
	}
	return 0;
}

static int read_ints(const struct key *key, const json_t *value, void *field, char what[WHAT_MAX])
{
	struct key_ints *list = field;
	const json_t *item;
	size_t i;

	say_number(key, "a list of integers, each", what);
	if (key->min == 0 && key->max == 0)
		snprintf(what, WHAT_MAX, "must be a list of integers, like [1, 2]");
	if (!json_is_array(value))
		return -1;
	json_array_foreach(value, i, item) {
		if (!json_is_integer(item) || !in_range(key, (double)json_integer_value(item)))
			return -1;
	}
	free(list->items);
	list->items = xcalloc(json_array_size(value) + 1, sizeof(list->items[0]));
	list->count = json_array_size(value);
	json_array_foreach(value, i, item) {
		list->items[i] = json_integer_value(item);
	}
	return 0;
}

static int (*const readers[])(const struct key *, const json_t *, void *, char[WHAT_MAX]) = {
	[KEY_BOOL] = read_bool,       [KEY_INT] = read_int,   [KEY_REAL] = read_real,
	[KEY_STRING] = read_string,   [KEY_ENUM] = read_enum, [KEY_DURATION] = read_duration,
	[KEY_STRINGS] = read_strings, [KEY_INTS] = read_ints,
};

/* --- reading a document ---------------------------------------------------------------------- */

/* A default is written as JSON, which TOML's numbers, booleans, strings and lists are, too; a string may
 * do without the quotes ("60s"). */
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
	rc = readers[key->type](key, value, field_of(key, out), what);
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
	if (!value || readers[key->type](key, value, field_of(key, out), what) == 0)
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
	for (size_t i = 0; i < count; i++) {
		void *field = field_of(&table[i], out);

		if (table[i].type == KEY_STRING) {
			free(*(char **)field);
			*(char **)field = NULL;
		} else if (table[i].type == KEY_STRINGS) {
			free_strings(field);
		} else if (table[i].type == KEY_INTS) {
			free(((struct key_ints *)field)->items);
			*(struct key_ints *)field = (struct key_ints){ 0 };
		}
	}
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

static json_t *json_of(const struct key *key, const void *field)
{
	const struct key_strings *strings = field;
	const struct key_ints *ints = field;
	json_t *list;
	char text[64];

	switch (key->type) {
	case KEY_BOOL:
		return json_boolean(*(const bool *)field);
	case KEY_INT:
		return json_integer(*(const int64_t *)field);
	case KEY_REAL:
		return json_real(*(const double *)field);
	case KEY_STRING:
		return *(char *const *)field ? json_string(*(char *const *)field) : NULL;
	case KEY_DURATION:
		return json_string(duration_exact(*(const int64_t *)field, text));
	case KEY_STRINGS:
		list = json_array();
		for (size_t i = 0; i < strings->count; i++)
			json_array_append_new(list, js_bytes(strings->items[i]));
		return list;
	case KEY_INTS:
		list = json_array();
		for (size_t i = 0; i < ints->count; i++)
			json_array_append_new(list, json_integer(ints->items[i]));
		return list;
	case KEY_ENUM:
		break;
	}
	return NULL;
}

static json_t *json_of_enum(const struct key *key, const void *field)
{
	const char *at = key->choices;

	for (int i = *(const int *)field; i > 0 && at; i--) {
		at = strchr(at, '|');
		at = at ? at + 1 : NULL;
	}
	return at ? json_stringn(at, strcspn(at, "|")) : NULL;
}

static void print_section(const struct key *table, size_t count, const char *section,
			  const void *values, FILE *to)
{
	struct toml one = { .root = json_object() };
	char *text;

	for (size_t i = 0; i < count; i++) {
		const void *field = (const char *)values + table[i].offset;
		json_t *value;

		if (strcmp(table[i].section, section) != 0)
			continue;
		value = table[i].type == KEY_ENUM ? json_of_enum(&table[i], field)
						  : json_of(&table[i], field);
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
