/* SPDX-License-Identifier: MIT */
/* bytes.c - strings to JSON: as they are where they are UTF-8, else as hexadecimal digits. */
#include "common/base/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

/* Owned. */
static char *to_hex(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(s);
	char *hex = xmalloc(2 * len + 1);

	for (size_t i = 0; i < len; i++) {
		hex[2 * i] = digits[(unsigned char)s[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)s[i] & 15];
	}
	hex[2 * len] = '\0';
	return hex;
}

static json_t *hex_object(const char *s)
{
	char *hex = to_hex(s);
	json_t *object = json_pack("{s:s}", "hex", hex);

	free(hex);
	return object;
}

json_t *js_bytes(const char *s)
{
	json_t *string = json_string(s); /* NULL for what is no UTF-8 */

	return string ? string : hex_object(s);
}

json_t *js_words(char *const *list)
{
	json_t *array = json_array();

	for (; list && *list; list++)
		json_array_append_new(array, js_bytes(*list));
	return array;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static char *from_hex(const char *hex, size_t len)
{
	char *s;

	if (len % 2 != 0)
		return NULL;
	s = xmalloc(len / 2 + 1);
	for (size_t i = 0; i < len / 2; i++) {
		int high = nibble(hex[2 * i]);
		int low = nibble(hex[2 * i + 1]);

		if (high < 0 || low < 0 || high + low == 0) {
			free(s);
			return NULL;
		}
		s[i] = (char)(high * 16 + low);
	}
	s[len / 2] = '\0';
	return s;
}

char *js_bytes_take(const json_t *v)
{
	const json_t *hex = json_object_get(v, "hex");

	if (json_is_string(v)) {
		const char *s = json_string_value(v);

		return strlen(s) == json_string_length(v) ? xstrdup(s) : NULL;
	}
	if (!json_is_string(hex) || json_object_size(v) != 1)
		return NULL;
	return from_hex(json_string_value(hex), json_string_length(hex));
}

char *js_bytes_key(const char *s)
{
	json_t *string = s[0] == '=' ? NULL : json_string(s);
	char *hex, *key;

	if (string) {
		json_decref(string);
		return xstrdup(s);
	}
	hex = to_hex(s);
	key = xasprintf("=%s", hex);
	free(hex);
	return key;
}

char *js_bytes_key_take(const char *key)
{
	return key[0] == '=' ? from_hex(key + 1, strlen(key + 1)) : xstrdup(key);
}
