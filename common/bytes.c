/* SPDX-License-Identifier: MIT */
#include "common/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static json_t *hex_object(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(s);
	char *hex = xmalloc(2 * len + 1);
	json_t *object;

	for (size_t i = 0; i < len; i++) {
		hex[2 * i] = digits[(unsigned char)s[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)s[i] & 15];
	}
	hex[2 * len] = '\0';
	object = json_pack("{s:s}", "hex", hex);
	free(hex);
	return object;
}

json_t *js_bytes(const char *s)
{
	json_t *string = json_string(s);	/* NULL for what is no UTF-8 */

	return string ? string : hex_object(s);
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
