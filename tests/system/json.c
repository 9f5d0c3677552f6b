/* SPDX-License-Identifier: MIT */
/* json.c - json PATH: one value of the document on standard input: attempts.0.job_id; "#" counts. A
 * string is printed as it is, all else as JSON; a member that is absent as "absent", with status 1.
 * Tests ask thousands of times, and an interpreter would take most of their time to start. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *member(json_t *value, const char *name)
{
	if (json_is_object(value))
		return json_object_get(value, name);
	char *end;
	errno = 0;
	long index = strtol(name, &end, 10);
	if (!json_is_array(value) || end == name || *end != '\0' || errno != 0)
		return NULL;
	return json_array_get(value,
			      index < 0 ? json_array_size(value) + (size_t)index : (size_t)index);
}

static json_t *count(json_t *value)
{
	size_t n = json_is_object(value) ? json_object_size(value) : json_array_size(value);
	return json_is_object(value) || json_is_array(value) ? json_integer((json_int_t)n) : NULL;
}

static json_t *find(json_t *value, char *path)
{
	char *rest = path;
	for (char *name; value && (name = strsep(&rest, "."));)
		if (strcmp(name, "#") == 0)
			value = count(value);
		else if (*name)
			value = member(value, name);
	return value;
}

/* The shortest decimal that is read back as the same number. */
static void print_real(double number)
{
	char text[32];
	int digits = 15;
	do
		(void)snprintf(text, sizeof text, "%.*g", digits, number);
	while (strtod(text, NULL) != number && ++digits <= 17);
	(void)printf("%s%s\n", text, strpbrk(text, ".en") ? "" : ".0");
}

static void print(json_t *value)
{
	if (json_is_string(value)) {
		(void)puts(json_string_value(value));
	} else if (json_is_real(value)) {
		print_real(json_real_value(value));
	} else {
		(void)json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		(void)putchar('\n');
	}
}

int main(int argc, char **argv)
{
	json_error_t error;
	json_t *document = argc == 2 ? json_loadf(stdin, JSON_DECODE_ANY, &error) : NULL;
	if (!document) {
		(void)fprintf(stderr, "json: %s\n", argc == 2 ? error.text : "usage: json PATH");
		return 2;
	}
	json_t *value = find(document, argv[1]);
	if (!value) {
		(void)puts("absent");
		return 1;
	}
	print(value);
	return 0;
}
