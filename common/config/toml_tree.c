/* SPDX-License-Identifier: MIT */
/* toml_tree.c - what can be done with a parsed document without a parser: change it, print it, ask
 * for lines. The tree keeps the order of the file, so that printing it stays recognisable. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/config/toml.h"
#include "common/config/toml_native.h"

enum { TOML_MAX_BYTES = 1024 * 1024 };

/* Behind a value that toml_set gave: it counts over the file's for the next reader, too. */
static const char assigned_mark[] = " # --set";

/* Which lines end in the mark; [0] is no line's. Owned. */
static bool *marked_lines(const char *text, size_t len, size_t *count)
{
	const size_t mark = sizeof(assigned_mark) - 1;
	const char *end = text + len, *next;
	bool *marked = xcalloc(len + 2, sizeof(*marked));

	for (*count = 1; text < end; text = next + 1) {
		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next : end;
		marked[(*count)++] = (size_t)(next - text) > mark &&
				     memcmp(next - mark, assigned_mark, mark) == 0;
	}
	return marked;
}

static void read_marks(json_t *lines, const char *text, size_t len)
{
	size_t count;
	bool *marked = marked_lines(text, len, &count);
	const char *key;
	json_t *line;

	json_object_foreach(lines, key, line) {
		size_t number = (size_t)json_integer_value(line);

		if (number < count && marked[number])
			json_integer_set(line, TOML_ASSIGNED);
	}
	free(marked);
}

int toml_parse(struct toml *out, const char *text, size_t len, const char *file, struct err *err)
{
	struct toml_fault fault = { 0 };

	*out = (struct toml){ .file = xstrdup(file), .lines = json_object() };
	out->root = toml_native_parse(text, len, out->lines, &fault);
	if (out->root) {
		read_marks(out->lines, text, len);
		return 0;
	}
	if (fault.line > 0)
		err_set(err, ERR_USAGE, "%s:%lld: %s", file, fault.line, fault.what);
	else
		err_set(err, ERR_INTERNAL, "%s: %s", file, fault.what);
	toml_clear(out);
	return -1;
}

/* Takes the text; NULL = it could not be read. */
static int parse_text(struct toml *out, char *text, size_t len, const char *path, struct err *err)
{
	int rc;

	*out = (struct toml){ 0 };
	if (!text)
		return -1;
	rc = toml_parse(out, text, len, path, err);
	free(text);
	return rc;
}

int toml_load(struct toml *out, const char *path, struct err *err)
{
	size_t len;
	char *text = file_read(path, TOML_MAX_BYTES, &len, err);

	return parse_text(out, text, len, path, err);
}

int toml_load_guarded(struct toml *out, const char *path, struct err *err)
{
	size_t len;
	char *text = guarded_read(path, TOML_MAX_BYTES, &len, err);

	return parse_text(out, text, len, path, err);
}

void toml_clear(struct toml *toml)
{
	free(toml->file);
	json_decref(toml->root);
	json_decref(toml->lines);
	*toml = (struct toml){ 0 };
}

int toml_line(const struct toml *toml, const char *dotted_key)
{
	return (int)js_int(toml->lines, dotted_key, 0);
}

const char *toml_where(const struct toml *toml, const char *key, char out[TOML_WHERE_BYTES])
{
	int line = toml_line(toml, key);

	if (line > 0)
		snprintf(out, TOML_WHERE_BYTES, "%s:%d: %s", toml->file, line, key);
	else if (line == TOML_ASSIGNED)
		snprintf(out, TOML_WHERE_BYTES, "%s%s",
			 toml->option ? toml->option : "--set: ", key);
	else
		snprintf(out, TOML_WHERE_BYTES, "%s: %s", toml->file, key);
	return out;
}

/* --- --set ----------------------------------------------------------------------------------- */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static bool is_dotted_key(const char *key, size_t len)
{
	bool after_dot = true;
	int dots = 0;

	for (size_t i = 0; i < len; i++) {
		if (key[i] != '.' && !is_bare(key[i]))
			return false;
		if (key[i] == '.' && (after_dot || ++dots >= JS_MAX_DEPTH))
			return false;
		after_dot = key[i] == '.';
	}
	return !after_dot;
}

/* The text as one TOML value; as a string when it is none. "1\nb = 2" would parse as well, but it
 * is not one value. */
static json_t *read_value(const char *text, struct err *err)
{
	char *line = xasprintf("v = %s", text);
	struct toml one;
	json_t *value = NULL;

	if (!strchr(text, '\n') && toml_parse(&one, line, strlen(line), "--set", NULL) == 0) {
		value = json_incref(json_object_get(one.root, "v"));
		toml_clear(&one);
	}
	free(line);
	if (!value)
		value = json_string(text);
	if (!value)
		err_set(err, ERR_USAGE, "the value is not valid UTF-8");
	return value;
}

/* A value from the command line has no line, and neither has anything that was below it. */
static void forget_lines(json_t *lines, const char *key)
{
	size_t len = strlen(key);
	const char *name;
	json_t *line;
	void *next;

	json_object_foreach_safe(lines, next, name, line) {
		if (strncmp(name, key, len) == 0 &&
		    (name[len] == '\0' || name[len] == '.' || name[len] == '['))
			json_object_del(lines, name);
	}
}

/* The table that holds the last part of `key`, made where it is missing. `key` is cut at the dots
 * and whole again on return. *last is the part behind the last dot. */
static json_t *walk(struct toml *toml, char *key, const char **last, struct err *err)
{
	json_t *table = toml->root;
	char *part = key;

	for (char *dot = strchr(part, '.'); dot; dot = strchr(part, '.')) {
		json_t *next;

		*dot = '\0';
		next = json_object_get(table, part);
		if (!next) {
			next = json_object();
			json_object_set_new(table, part, next);
			json_object_set_new(toml->lines, key, json_integer(TOML_ASSIGNED));
		}
		*dot = '.';
		if (!json_is_object(next)) {
			err_set(err, ERR_USAGE, "%.*s is a value, not a section", (int)(dot - key),
				key);
			return NULL;
		}
		table = next;
		part = dot + 1;
	}
	*last = part;
	return table;
}

static int set_key(struct toml *toml, char *key, const char *text, struct err *err)
{
	json_t *value = read_value(text, err);
	const char *last = NULL;
	json_t *table;

	if (!value)
		return -1;
	table = walk(toml, key, &last, err);
	if (!table) {
		json_decref(value);
		return -1;
	}
	forget_lines(toml->lines, key);
	json_object_set_new(toml->lines, key, json_integer(TOML_ASSIGNED));
	json_object_set_new(table, last, value);
	return 0;
}

int toml_set(struct toml *toml, const char *assignment, struct err *err)
{
	const char *equals = strchr(assignment, '=');
	const char *option = toml->option ? toml->option : "--set ";
	char *key;
	int rc;

	if (!equals || !is_dotted_key(assignment, (size_t)(equals - assignment)))
		return err_set(err, ERR_USAGE, "%s%s: must be section.key=value", option,
			       assignment);
	key = xstrndup(assignment, (size_t)(equals - assignment));
	rc = set_key(toml, key, equals + 1, err);
	free(key);
	return rc < 0 ? err_wrap(err, "%s%s", option, assignment) : 0;
}

/* --- printing -------------------------------------------------------------------------------- */

static void print_string(struct buf *out, const char *text, size_t len)
{
	buf_addf(out, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			buf_addf(out, "\\%c", c);
		else if (c == '\n')
			buf_addf(out, "\\n");
		else if (c == '\t')
			buf_addf(out, "\\t");
		else if (c < 0x20 || c == 0x7f)
			buf_addf(out, "\\u%04x", c);
		else
			buf_add(out, text + i, 1);
	}
	buf_addf(out, "\"");
}

static void print_key(struct buf *out, const char *key)
{
	size_t bare = 0;

	while (is_bare(key[bare]))
		bare++;
	if (bare > 0 && key[bare] == '\0')
		buf_addf(out, "%s", key);
	else
		print_string(out, key, strlen(key));
}

/* The shortest digits that read back as the same number, with a mark that it is no integer. */
static void print_real(struct buf *out, double number)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	buf_addf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void print_value(struct buf *out, json_t *value)
{
	const char *separator = "";
	json_t *item;
	const char *key;
	size_t i;

	if (json_is_string(value)) {
		print_string(out, json_string_value(value), json_string_length(value));
	} else if (json_is_integer(value)) {
		buf_addf(out, "%lld", (long long)json_integer_value(value));
	} else if (json_is_real(value)) {
		print_real(out, json_real_value(value));
	} else if (json_is_array(value)) {
		buf_addf(out, "[");
		json_array_foreach(value, i, item) {
			buf_addf(out, "%s", separator);
			print_value(out, item);
			separator = ", ";
		}
		buf_addf(out, "]");
	} else if (json_is_object(value)) {
		buf_addf(out, "{");
		json_object_foreach(value, key, item) {
			buf_addf(out, "%s", separator);
			print_key(out, key);
			buf_addf(out, " = ");
			print_value(out, item);
			separator = ", ";
		}
		buf_addf(out, "}");
	} else {
		buf_addf(out, "%s", json_is_true(value) ? "true" : "false");
	}
}

/* Values of a table stand before its sub-tables: behind a header of a sub-table they would belong
 * to that. */
static void print_own_values(struct buf *out, const struct toml *toml, json_t *table,
			     const char *path)
{
	const char *key;
	json_t *value;

	json_object_foreach(table, key, value) {
		char *dotted = xasprintf("%s.%s", path, key);

		if (!json_is_object(value)) {
			print_key(out, key);
			buf_addf(out, " = ");
			print_value(out, value);
			buf_addf(out, "%s\n",
				 toml_line(toml, dotted) == TOML_ASSIGNED ? assigned_mark : "");
		}
		free(dotted);
	}
}

static void print_table(struct buf *out, const struct toml *toml, json_t *table, const char *path)
{
	const char *key;
	json_t *value;

	print_own_values(out, toml, table, path);
	json_object_foreach(table, key, value) {
		struct buf whole;

		if (!json_is_object(value))
			continue;
		buf_init(&whole, SIZE_MAX);
		buf_addf(&whole, "%s%s", path, path[0] ? "." : "");
		print_key(&whole, key);
		buf_addf(out, "%s[%s]\n", out->len > 0 ? "\n" : "", whole.data);
		print_table(out, toml, value, whole.data);
		buf_fini(&whole);
	}
}

char *toml_print(const struct toml *toml)
{
	struct buf out;

	buf_init(&out, SIZE_MAX);
	print_table(&out, toml, toml->root, "");
	return buf_take(&out);
}

void toml_flatten(json_t *out, const char *prefix, json_t *table)
{
	const char *name;
	json_t *value;

	json_object_foreach(table, name, value) {
		char *path = xasprintf("%s%s%s", prefix, prefix[0] ? "." : "", name);

		if (json_is_object(value))
			toml_flatten(out, path, value);
		else
			json_object_set(out, path, value);
		free(path);
	}
}

json_t *toml_table(const struct toml *toml, const char *dotted_key, const char **name)
{
	json_t *table = toml->root;
	const char *dot;

	while (table && (dot = strchr(dotted_key, '.'))) {
		char *part = xstrndup(dotted_key, (size_t)(dot - dotted_key));
		table = json_object_get(table, part);
		free(part);
		dotted_key = dot + 1;
	}
	*name = dotted_key;
	return table;
}

json_t *toml_value(const struct toml *toml, const char *dotted_key)
{
	const char *name;
	json_t *table = toml_table(toml, dotted_key, &name);

	return json_object_get(table, name);
}
