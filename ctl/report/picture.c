/* SPDX-License-Identifier: MIT */
/* picture.c - dots in the two ways in which terminals take pictures: sixels, as DEC's VT340 had
 * them, and kitty's graphics protocol. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/mem.h"
#include "ctl/report/dots.h"

enum {
	PICTURE_MAX_BYTES = 16 * 1024 * 1024,
	BAND_ROWS = 6,            /* of a sixel */
	KITTY_CHUNK_BYTES = 4096, /* of base64, at most */
	RGBA_BYTES = 4,
};

/* read on light and on dark */
static const unsigned char colors[DOT_COUNT][RGBA_BYTES] = {
	[DOT_UNDONE] = { 136, 136, 136, 255 },
	[DOT_CURVE] = { 51, 136, 221, 255 },
};

/* --- sixels ----------------------------------------------------------------------------------- */

static char sixel_at(const struct dots *d, int x, int band, enum dot dot)
{
	int bits = 0;

	for (int i = 0; i < BAND_ROWS && band + i < d->height; i++)
		if (d->cells[(size_t)(band + i) * (size_t)d->width + x] == dot)
			bits |= 1 << i;
	return (char)('?' + bits);
}

static void put_band(struct buf *out, const struct dots *d, int band, enum dot dot)
{
	buf_addf(out, "#%d", (int)dot);
	for (int x = 0, run; x < d->width; x += run) {
		char sixel = sixel_at(d, x, band, dot);

		for (run = 1; x + run < d->width && sixel_at(d, x + run, band, dot) == sixel;)
			run++;
		buf_addf(out, "!%d%c", run, sixel);
	}
	buf_addf(out, "$");
}

char *dots_sixel(const struct dots *d)
{
	struct buf out;

	buf_init(&out, PICTURE_MAX_BYTES);
	/* dots are square; what is not set stays as it is */
	buf_addf(&out, "\033P0;1q\"1;1;%d;%d", d->width, d->height);
	for (int dot = DOT_UNDONE; dot < DOT_COUNT; dot++)
		buf_addf(&out, "#%d;2;%d;%d;%d", dot, colors[dot][0] * 100 / 255,
			 colors[dot][1] * 100 / 255, colors[dot][2] * 100 / 255);
	for (int band = 0; band < d->height; band += BAND_ROWS) {
		for (int dot = DOT_UNDONE; dot < DOT_COUNT; dot++)
			put_band(&out, d, band, (enum dot)dot);
		buf_addf(&out, "-");
	}
	buf_addf(&out, "\033\\");
	return buf_take(&out);
}

/* --- kitty ------------------------------------------------------------------------------------ */

static char *base64(const unsigned char *data, size_t len)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = xcalloc((len + 2) / 3 + 1, 4), *to = text;

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		unsigned bits = (unsigned)data[i] << 16;

		bits |= left > 1 ? (unsigned)data[i + 1] << 8 : 0;
		bits |= left > 2 ? data[i + 2] : 0;
		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = left > 1 ? letters[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? letters[bits & 63] : '=';
	}
	return text;
}

/* Red, green, blue and opacity of each dot, deflated, as base64; owned. */
static char *rgba_text(const struct dots *d)
{
	size_t count = (size_t)d->width * (size_t)d->height;
	unsigned char *rgba = xmalloc(count * RGBA_BYTES), *packed;
	uLongf len = compressBound(count * RGBA_BYTES);
	char *text = NULL;

	for (size_t i = 0; i < count; i++)
		memcpy(rgba + i * RGBA_BYTES, colors[d->cells[i]], RGBA_BYTES);
	packed = xmalloc(len);
	if (compress(packed, &len, rgba, count * RGBA_BYTES) == Z_OK)
		text = base64(packed, len);
	free(packed);
	free(rgba);
	return text ? text : xstrdup("");
}

char *dots_kitty(const struct dots *d, int columns, int rows)
{
	char *text = rgba_text(d);
	size_t len = strlen(text);
	struct buf out;

	buf_init(&out, PICTURE_MAX_BYTES);
	for (size_t at = 0; at < len; at += KITTY_CHUNK_BYTES) {
		size_t size = len - at < KITTY_CHUNK_BYTES ? len - at : KITTY_CHUNK_BYTES;

		buf_addf(&out, "\033_G");
		if (at == 0) /* transmit and show; without an answer; the cursor stays */
			buf_addf(&out, "a=T,q=2,C=1,f=32,o=z,s=%d,v=%d,c=%d,r=%d,", d->width,
				 d->height, columns, rows);
		buf_addf(&out, "m=%d;", at + size < len);
		buf_add(&out, text + at, size);
		buf_addf(&out, "\033\\");
	}
	free(text);
	return buf_take(&out);
}
