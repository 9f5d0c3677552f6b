/* SPDX-License-Identifier: MIT */
/* base64.c - RFC 4648, the usual alphabet. */
#include "worker/lbworker/text/base64.h"

#include <stdint.h>
#include <string.h>

static int digit_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool from_base64(const char *text, size_t len, char *out, size_t *out_len)
{
	uint32_t bits = 0;
	unsigned count = 0;

	*out_len = 0;
	if (len == 0 || len % 4 != 0)
		return false;
	while (len > 0 && text[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		int digit = digit_of(text[i]);
		if (digit < 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		count += 6;
		if (count >= 8) {
			count -= 8;
			out[(*out_len)++] = (char)(bits >> count);
		}
	}
	return *out_len > 0;
}
