/* SPDX-License-Identifier: MIT */
/* key_values.c - a function for each type of key: what it takes of TOML's values, and the way
 * back. */
#include "common/config/key_values.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"

enum { WHAT_MAX = KEY_WHAT_BYTES };

/* Beyond this a maximum is only a guard against overflow and not worth telling people. */
static const double untold_max = 1e15;

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

/* The other way: NULL when there are fewer. */
static json_t *choice_at(const char *choices, int index)
{
	const char *at = choices;

	for (; index > 0 && at; index--) {
		at = strchr(at, '|');
		at = at ? at + 1 : NULL;
	}
	return at ? json_stringn(at, strcspn(at, "|")) : NULL;
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

int key_read(const struct key *key, const json_t *value, void *out, char what[KEY_WHAT_BYTES])
{
	return readers[key->type](key, value, (char *)out + key->offset, what);
}

void key_clear(const struct key *key, void *out)
{
	void *field = (char *)out + key->offset;

	if (key->type == KEY_STRING) {
		free(*(char **)field);
		*(char **)field = NULL;
	} else if (key->type == KEY_STRINGS) {
		free_strings(field);
	} else if (key->type == KEY_INTS) {
		free(((struct key_ints *)field)->items);
		*(struct key_ints *)field = (struct key_ints){ 0 };
	}
}

json_t *key_json(const struct key *key, const void *values)
{
	const void *field = (const char *)values + key->offset;
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
		return choice_at(key->choices, *(const int *)field);
	}
	return NULL;
}
