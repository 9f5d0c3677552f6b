/* SPDX-License-Identifier: MIT */
/* json.c - parses JSON of bounded depth, and reads members by type.
 *
 * jansson recurses once per level, 2048 deep by default, and its tree is walked recursively by
 * everybody else; a scan over the brackets refuses deep text before anything is built. */
#include "common/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/text.h"

/* Brackets inside strings do not count; broken text is left to the parser to complain about. */
static bool too_deep(const char *text, size_t len)
{
	int depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if ((c == '[' || c == '{') && ++depth > JS_MAX_DEPTH)
			return true;
		else if (c == ']' || c == '}')
			depth--;
	}
	return false;
}

static json_t *parse(const char *text, size_t len, size_t flags, struct err *err)
{
	json_error_t why;
	json_t *value = json_loadb(text, len, flags | JSON_DECODE_ANY, &why);

	if (!value)
		err_set(err, ERR_USAGE, "bad JSON at line %d column %d: %s", why.line, why.column,
			why.text);
	return value;
}

json_t *js_parse(const char *text, size_t len, struct err *err)
{
	if (too_deep(text, len)) {
		err_set(err, ERR_USAGE, "JSON nested deeper than %d", JS_MAX_DEPTH);
		return NULL;
	}
	/* jansson takes a NUL byte for the end and would not look at what hides behind it. */
	if (memchr(text, '\0', len)) {
		err_set(err, ERR_USAGE, "bad JSON: NUL byte");
		return NULL;
	}
	return parse(text, len, JSON_REJECT_DUPLICATES, err);
}

/* The words that Python writes where a number is none, each as a 0; owned. */
static char *with_zeros(const char *text, size_t len)
{
	static const char *const words[] = { "NaN", "Infinity" };
	char *out = xstrndup(text, len);
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string && out[i] == '\\')
			i++;
		else if (out[i] == '"')
			in_string = !in_string;
		for (size_t w = 0; !in_string && w < 2 && i < len; w++) {
			size_t letters = strlen(words[w]);
			if (strncmp(out + i, words[w], letters) == 0) {
				memset(out + i, ' ', letters);
				out[i] = '0';
			}
		}
	}
	return out;
}

json_t *js_parse_data(const char *text, size_t len, struct err *err)
{
	static const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
	json_t *value;
	char *zeros;

	if (too_deep(text, len) || memchr(text, '\0', len))
		return js_parse(text, len, err); /* says what is wrong */
	value = parse(text, len, flags, NULL);
	if (value)
		return value;
	zeros = with_zeros(text, len);
	value = parse(zeros, len, flags, err);
	free(zeros);
	return value;
}

json_t *js_load(const char *path, size_t max_bytes, struct err *err)
{
	size_t len;
	char *text = file_read(path, max_bytes, &len, err);
	json_t *value;

	if (!text)
		return NULL;
	value = js_parse(text, len, err);
	free(text);
	if (!value)
		err_wrap(err, "%s", path);
	return value;
}

const char *js_str(const json_t *object, const char *key, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : fallback;
}

int64_t js_int(const json_t *object, const char *key, int64_t fallback)
{
	const json_t *value = json_object_get(object, key);
	double real;

	if (json_is_integer(value))
		return json_integer_value(value);
	if (!json_is_real(value))
		return fallback;
	/* Casting what does not fit is undefined. 2^63 itself does not fit. */
	real = json_real_value(value);
	return real >= -9223372036854775808.0 && real < 9223372036854775808.0 ? (int64_t)real
									      : fallback;
}

double js_real(const json_t *object, const char *key, double fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : fallback;
}

bool js_bool(const json_t *object, const char *key, bool fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_boolean(value) ? json_is_true(value) : fallback;
}

void js_set_str(json_t *object, const char *key, const char *text)
{
	json_t *value = text ? json_string(text) : json_null();

	if (!value) {
		/* Not UTF-8: JSON cannot say it, so say what can be said. */
		char *clean = xstrdup(text);

		text_clean(clean);
		value = json_string(clean);
		free(clean);
	}
	json_object_set_new(object, key, value);
}

void js_set_int(json_t *object, const char *key, int64_t value)
{
	json_object_set_new(object, key, value == JS_NONE ? json_null() : json_integer(value));
}

void js_set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

void js_set_bool(json_t *object, const char *key, bool value)
{
	json_object_set_new(object, key, json_boolean(value));
}

void js_set_time(json_t *object, const char *key, int64_t time_ms)
{
	json_object_set_new(object, key,
			    time_ms > 0 ? json_real((double)time_ms / 1000) : json_null());
}

char *js_line(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	/* Values made by us always can be dumped; only memory can be missing. */
	return text ? text : xstrdup("null");
}

static int save(int (*write)(const char *, const void *, size_t, mode_t, struct err *),
		const char *path, json_t *value, struct err *err)
{
	char *text = js_line(value);
	int rc = write(path, text, strlen(text), 0640, err);

	free(text);
	json_decref(value);
	return rc;
}

int js_save(const char *path, json_t *value, struct err *err)
{
	return save(file_write_atomic, path, value, err);
}

int js_save_visible(const char *path, json_t *value, struct err *err)
{
	return save(file_write_visible, path, value, err);
}

json_t *js_sorted(json_t *list, int (*compare)(const void *, const void *))
{
	size_t count = json_array_size(list);
	json_t **items = xcalloc(count + 1, sizeof(json_t *)), *sorted = json_array();

	for (size_t i = 0; i < count; i++)
		items[i] = json_array_get(list, i);
	qsort(items, count, sizeof(json_t *), compare);
	for (size_t i = 0; i < count; i++)
		json_array_append(sorted, items[i]);
	free(items);
	json_decref(list);
	return sorted;
}
