/* SPDX-License-Identifier: MIT */
/* sweep.c - reads ranges and lists of values, and goes through their combinations. */
#include "ctl/base/sweep.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"

enum { FILE_MAX_BYTES = 512 * 1024 };

/* Length of the value at `at`: up to a comma outside of brackets and quotes. */
static size_t value_len(const char *at)
{
	char quote = '\0';
	size_t len = 0;
	int depth = 0;

	for (; at[len]; len++) {
		char c = at[len];

		if (quote) {
			quote = c == quote ? '\0' : quote;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == ',' && depth == 0) {
			break;
		} else {
			depth += (c == '[' || c == '{') - (c == ']' || c == '}');
		}
	}
	return len;
}

static void add(json_t *values, const char *key, size_t key_len, const char *value)
{
	char *word = xasprintf("%.*s=%s", (int)key_len, key, value);

	json_array_append_new(values, js_bytes(word));
	free(word);
}

/* "1..3". False: it is a plain value. */
static int add_range(json_t *values, const char *key, size_t key_len, const char *value,
		     struct err *err)
{
	const char *dots = strstr(value, "..");
	char *end, number[32];
	long long low, high;

	if (!dots || dots == value)
		return 0;
	low = strtoll(value, &end, 10);
	if (end != dots)
		return 0;
	high = strtoll(dots + 2, &end, 10);
	if (end == dots + 2 || *end != '\0')
		return 0;
	if (high < low || (unsigned long long)high - (unsigned long long)low >= SWEEP_MAX)
		return err_set(err, ERR_USAGE,
			       "--sweep %.*s: \"%.40s\" must be a range upwards of at most %d "
			       "numbers",
			       (int)key_len, key, value, SWEEP_MAX);
	for (long long n = low; n <= high; n++) {
		snprintf(number, sizeof(number), "%lld", n);
		add(values, key, key_len, number);
	}
	return 1;
}

/* One value a line; blank lines and those that begin with '#' are left out. */
static int add_file(json_t *values, const char *key, size_t key_len, const char *path,
		    struct err *err)
{
	struct err why = { 0 };
	size_t len = 0;
	char *text = file_read(path, FILE_MAX_BYTES, &len, &why), *next = text;

	if (!text)
		return err_set(err, ERR_USAGE, "--sweep %.*s: %s", (int)key_len, key, why.text);
	for (char *line; (line = strsep(&next, "\n"));) {
		line[strcspn(line, "\r")] = '\0';
		line += strspn(line, " \t");
		for (size_t end = strlen(line); end > 0 && strchr(" \t", line[end - 1]); end--)
			line[end - 1] = '\0';
		if (line[0] && line[0] != '#')
			add(values, key, key_len, line);
	}
	free(text);
	if (json_array_size(values) == 0)
		return err_set(err, ERR_USAGE, "--sweep %.*s: %s holds no value", (int)key_len, key,
			       path);
	return 0;
}

static bool is_key(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)key[i]) && !strchr("._-", key[i]))
			return false;
	}
	return len > 0;
}

/* The values of one --sweep, as settings; NULL with err. */
static json_t *axis(const char *word, struct err *err)
{
	size_t key_len = strcspn(word, "=");
	const char *at = word + key_len;
	json_t *values = json_array();
	int rc = 0;

	if (*at != '=' || !is_key(word, key_len))
		rc = err_set(err, ERR_USAGE,
			     "--sweep %.100s: write it as KEY=VALUE,VALUE,..., or "
			     "KEY=@FILE with a value on each line",
			     word);
	if (rc >= 0 && at[1] == '@') {
		rc = add_file(values, word, key_len, at + 2, err);
		at = "";
	}
	while (rc >= 0 && *at) {
		size_t len = value_len(++at);
		char *value = xstrndup(at, len);

		if (len == 0)
			rc = err_set(err, ERR_USAGE, "--sweep %.100s: a value is empty", word);
		else
			rc = add_range(values, word, key_len, value, err);
		if (rc == 0)
			add(values, word, key_len, value);
		free(value);
		at += len;
	}
	if (rc >= 0)
		return values;
	json_decref(values);
	return NULL;
}

/* Each of `all` with each of `values` behind it; takes both. */
static json_t *times(json_t *all, json_t *values)
{
	json_t *product = json_array(), *before, *value;
	size_t i, k;

	json_array_foreach(all, i, before) {
		json_array_foreach(values, k, value) {
			json_t *one = json_copy(before);

			json_array_append(one, value);
			json_array_append_new(product, one);
		}
	}
	json_decref(all);
	json_decref(values);
	return product;
}

static int check_twice(const struct word_list *words, struct err *err)
{
	for (size_t i = 0; i < words->count; i++) {
		size_t len = strcspn(words->items[i], "=") + 1;

		for (size_t k = 0; k < i; k++) {
			if (strncmp(words->items[i], words->items[k], len) == 0)
				return err_set(err, ERR_USAGE,
					       "--sweep %.*s: comes twice; give all its values at "
					       "once",
					       (int)len - 1, words->items[i]);
		}
	}
	return 0;
}

json_t *sweep_combinations(const struct word_list *words, struct err *err)
{
	json_t *all = json_pack("[[]]");

	if (check_twice(words, err) < 0) {
		json_decref(all);
		return NULL;
	}
	for (size_t i = 0; all && i < words->count; i++) {
		json_t *values = axis(words->items[i], err);
		size_t count = json_array_size(all) * json_array_size(values);

		if (values && count <= SWEEP_MAX) {
			all = times(all, values);
			continue;
		}
		if (values)
			err_set(err, ERR_USAGE, "--sweep: more than %d combinations", SWEEP_MAX);
		json_decref(values);
		json_decref(all);
		all = NULL;
	}
	return all;
}
