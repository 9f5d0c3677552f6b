/* SPDX-License-Identifier: MIT */
/* sweep_fill.c - {lr} and LB_SWEEP_lr: values of a sweep where the submission wants them. */
#include "ctl/act/sweep_fill.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"

#define VARIABLE "LB_SWEEP_"

enum { SEARCHED_MAX_BYTES = 1024 * 1024 };

/* Members of a submission whose texts are filled in. */
static const char *const filled[] = { "command", "arguments", "options", "set" };

enum { FILLED = sizeof(filled) / sizeof(filled[0]) };

/* of a combination; owned */
struct pair {
	char *key, *value;
};

static struct pair split(const json_t *word)
{
	char *text = js_bytes_take(word);
	size_t len = strcspn(text, "=");
	struct pair pair = { xstrndup(text, len), xstrdup(text + len + 1) };
	size_t value_len = strlen(pair.value);

	/* "a,b" in quotes is one value without them; settings keep theirs, which are TOML's */
	if (value_len >= 2 && strchr("\"'", pair.value[0]) &&
	    pair.value[value_len - 1] == pair.value[0]) {
		memmove(pair.value, pair.value + 1, value_len - 2);
		pair.value[value_len - 2] = '\0';
	}
	free(text);
	return pair;
}

static void pair_free(struct pair *pair)
{
	free(pair->key);
	free(pair->value);
}

/* --- texts ------------------------------------------------------------------------------------ */

static void add_value(struct buf *out, const char *value, bool is_name)
{
	for (; *value; value++) {
		bool fits = isalnum((unsigned char)*value) || strchr("._-", *value);

		buf_add(out, is_name && !fits ? "-" : value, 1);
	}
}

/* The length of a {KEY} of the combination at `at`, whose value goes to `out`; 0 = there is
 * none. */
static size_t fill_one(struct buf *out, const char *at, const json_t *combination, bool is_name)
{
	const json_t *word;
	size_t len = 0, i;

	json_array_foreach(combination, i, word) {
		struct pair pair = split(word);
		size_t key_len = strlen(pair.key);

		if (len == 0 && strncmp(at + 1, pair.key, key_len) == 0 && at[1 + key_len] == '}') {
			len = key_len + 2;
			add_value(out, pair.value, is_name);
		}
		pair_free(&pair);
	}
	return len;
}

static char *fill(const char *text, const json_t *combination, bool is_name)
{
	struct buf out;
	size_t len;

	buf_init(&out, SIZE_MAX);
	buf_add(&out, "", 0);
	while (*text) {
		len = *text == '{' ? fill_one(&out, text, combination, is_name) : 0;
		if (len == 0)
			buf_add(&out, text, len = 1);
		text += len;
	}
	return out.data ? buf_take(&out) : xstrdup("");
}

char *sweep_fill_text(const char *text, const json_t *combination)
{
	return fill(text, combination, false);
}

char *sweep_fill_name(const char *text, const json_t *combination)
{
	return fill(text, combination, true);
}

/* --- what a key changes ----------------------------------------------------------------------- */

static bool says(const char *text, const char *key)
{
	char *word = xasprintf("{%s}", key);
	bool is = text && strstr(text, word);

	free(word);
	return is;
}

static bool is_filled(const json_t *args, const char *name, const char *key)
{
	const json_t *item;
	size_t k;

	for (size_t i = 0; i < FILLED; i++) {
		json_array_foreach(json_object_get(args, filled[i]), k, item) {
			char *text = js_bytes_take(item);
			bool is = says(text, key);

			free(text);
			if (is)
				return true;
		}
	}
	return says(name, key) || says(js_str(args, "toml", NULL), key);
}

/* "LB_SWEEP_learning_rate" of "learning-rate". */
static char *variable(const char *key)
{
	char *name = xasprintf(VARIABLE "%s", key);

	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '_';
	return name;
}

static bool file_says(const char *path, const char *word)
{
	struct stat st;
	bool is = false;
	char *text;
	size_t len;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SEARCHED_MAX_BYTES)
		return false;
	text = file_read(path, SEARCHED_MAX_BYTES, &len, NULL);
	is = text && memmem(text, len, word, strlen(word));
	free(text);
	return is;
}

/* The command, a script or a program that it names reads the variable. */
static bool is_read(const json_t *args, const char *key)
{
	char *word = variable(key);
	char *script = js_bytes_take(json_object_get(args, "script"));
	bool is = (script && strstr(script, word)) || strstr(js_str(args, "toml", ""), word);
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(args, "command"), i, item) {
		char *text = is ? NULL : js_bytes_take(item);

		is = is || (text && (strstr(text, word) || file_says(text, word)));
		free(text);
	}
	free(script);
	free(word);
	return is;
}

static int check_key(const json_t *args, const char *name, const char *key, struct err *err)
{
	char *word;
	int rc = 0;

	if (is_filled(args, name, key) || strchr(key, '.') || is_read(args, key))
		return 0;
	word = variable(key);
	if (json_object_get(args, "toml") && !json_object_get(args, "command") &&
	    !json_object_get(args, "script"))
		rc = err_set(err, ERR_USAGE,
			     "--sweep %s: changes nothing: a setting is written as "
			     "section.key=VALUES; {%s} in run.command is filled in",
			     key, key);
	else
		rc = err_set(err, ERR_USAGE,
			     "--sweep %s: changes nothing: write {%s} where the value "
			     "belongs, as in -- python train.py --%s {%s}, or read "
			     "%s in your script",
			     key, key, key, key, word);
	free(word);
	return rc;
}

static int check_same(const json_t *all, struct err *err)
{
	const json_t *one, *other;
	size_t i, k;

	json_array_foreach(all, i, one) {
		for (k = 0; k < i; k++) {
			char *text;

			other = json_array_get(all, k);
			if (!json_equal(one, other))
				continue;
			text = js_line(one);
			err_set(err, ERR_USAGE, "--sweep: two runs would be the same: %.200s",
				text);
			free(text);
			return -1;
		}
	}
	return 0;
}

int sweep_check(const json_t *args, const char *name, const json_t *all, struct err *err)
{
	const json_t *first = json_array_get(all, 0), *word;
	size_t i;

	json_array_foreach(first, i, word) {
		struct pair pair = split(word);
		int rc = check_key(args, name, pair.key, err);

		pair_free(&pair);
		if (rc < 0)
			return -1;
	}
	return check_same(all, err);
}

/* --- one run of it ---------------------------------------------------------------------------- */

static json_t *fill_list(const json_t *list, const json_t *combination)
{
	json_t *out = json_array(), *item;
	size_t i;

	json_array_foreach(list, i, item) {
		char *text = js_bytes_take(item);
		char *done = text ? sweep_fill_text(text, combination) : NULL;

		json_array_append_new(out, done ? js_bytes(done) : json_incref(item));
		free(done);
		free(text);
	}
	return out;
}

/* Within the strings of a run spec: its quotes and backslashes must stay what they are. */
static void fill_spec(json_t *one, const json_t *combination)
{
	json_t *quoted = json_array(), *word;
	char *text;
	size_t i;

	json_array_foreach(combination, i, word) {
		struct pair pair = split(word);
		json_t *value = json_string(pair.value);
		char *escaped = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

		if (escaped) {
			char *plain = xasprintf("%s=%.*s", pair.key, (int)strlen(escaped) - 2,
						escaped + 1);

			json_array_append_new(quoted, json_string(plain));
			free(plain);
		}
		free(escaped);
		json_decref(value);
		pair_free(&pair);
	}
	text = sweep_fill_text(js_str(one, "toml", ""), quoted);
	json_object_set_new(one, "toml", json_string(text));
	free(text);
	json_decref(quoted);
}

/* Where the run remembers what made it: lbctl compare shows that. */
static void add_setting(json_t *settings, const json_t *swept)
{
	char *list = js_line(swept), *set = xasprintf("run.sweep=%s", list);

	if (json_array_size(swept) > 0)
		json_array_append_new(settings, json_string(set));
	free(set);
	free(list);
}

json_t *sweep_fill(const json_t *args, const json_t *combination)
{
	json_t *one = json_deep_copy(args), *env = json_object_get(one, "env"), *word;
	json_t *swept = json_array(), *settings = json_array();
	size_t i;

	for (i = 0; i < FILLED; i++) {
		if (json_object_get(args, filled[i]))
			json_object_set_new(one, filled[i],
					    fill_list(json_object_get(args, filled[i]),
						      combination));
	}
	if (json_object_get(args, "toml"))
		fill_spec(one, combination);
	json_array_foreach(combination, i, word) {
		struct pair pair = split(word);
		bool is_setting = strchr(pair.key, '.') && !is_filled(args, NULL, pair.key);
		char *name = variable(pair.key), *text = xasprintf("%s=%s", pair.key, pair.value);

		json_object_set_new(env, name, js_bytes(pair.value));
		if (is_setting)
			json_array_append(settings, word);
		else
			json_array_append_new(swept, js_bytes(text));
		free(text);
		free(name);
		pair_free(&pair);
	}
	add_setting(settings, swept);
	json_array_extend(json_object_get(one, "set"), settings);
	json_decref(settings);
	json_decref(swept);
	return one;
}
