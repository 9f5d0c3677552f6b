/* SPDX-License-Identifier: MIT */
/* normalize.c - what a tokenizer does to a text before it is split: normal form C, replacements,
 * what is put in front or taken away, U+2581 for blanks. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/unicode/unicode.h"

typedef const unsigned char *place;

/* --- replacements ----------------------------------------------------------------------------- */

static int replace_within(const struct normal_step *step, place at, place end, struct buf *out)
{
	while (at < end) {
		bool is_left_out;
		place stop = split_word(&step->what, at, end, &is_left_out);
		if (!stop || (is_left_out ? buf_add(out, step->text, strlen(step->text))
					  : buf_add(out, at, (size_t)(stop - at))))
			return -1;
		at = stop;
	}
	return 0;
}

/* PCRE2 wants UTF-8: bytes that are none stay, and are between texts. */
static int replace(const struct normal_step *step, const char *text, size_t len, struct buf *out)
{
	place at = (place)text, end = at + len, valid = at;

	for (unsigned width; at < end; at += width) {
		if (unicode_decode(at, end, &width) != UNI_BAD)
			continue;
		if (replace_within(step, valid, at, out) || buf_add(out, at, 1))
			return -1;
		valid = at + 1;
	}
	return replace_within(step, valid, end, out);
}

/* --- steps ------------------------------------------------------------------------------------ */

static bool is_space(const char *at, const char *end, unsigned *width)
{
	return (unicode_kinds_of[unicode_decode((place)at, (place)end, width)] & UNI_SPACE) != 0;
}

/* White space is of one byte, two or three. */
static void strip(const struct normal_step *step, const char **text, size_t *len)
{
	const char *at = *text, *end = at + *len;
	unsigned width;

	while (step->left && at < end && is_space(at, end, &width))
		at += width;
	for (unsigned back = 1; step->right && back <= 3 && end - at >= (ptrdiff_t)back; back++)
		if (is_space(end - back, end, &width) && width == back) {
			end -= back;
			back = 0;
		}
	*text = at;
	*len = (size_t)(end - at);
}

static int run_step(const struct normal_step *step, const char *text, size_t len, struct buf *out)
{
	switch (step->kind) {
	case NORMAL_NFC:
		return unicode_nfc(text, len, out);
	case NORMAL_REPLACE:
		return replace(step, text, len, out);
	case NORMAL_PREPEND:
		if (len > 0 && buf_add(out, step->text, strlen(step->text)))
			return -1;
		break;
	case NORMAL_STRIP:
		strip(step, &text, &len);
		break;
	}
	return buf_add(out, text, len);
}

int normal_form(const struct tokenizer *t, struct buf room[NORMAL_BUFFERS], const char **text,
		size_t *len)
{
	for (size_t i = 0; i < t->steps; i++) {
		struct buf *out = &room[i % NORMAL_BUFFERS];
		out->len = 0;
		if (run_step(&t->step[i], *text, *len, out))
			return -1;
		*text = out->data ? out->data : "";
		*len = out->len;
	}
	return 0;
}

/* --- blanks ----------------------------------------------------------------------------------- */

static const char META[] = "\xE2\x96\x81";
enum { META_BYTES = 3 };

static bool begins_with(const char *text, size_t len, const char *with, size_t with_len)
{
	return len >= with_len && memcmp(text, with, with_len) == 0;
}

static int put_meta(const struct tokenizer *t, bool is_first, const char *text, size_t len,
		    struct buf *out)
{
	bool has_one = begins_with(text, len, " ", 1) || begins_with(text, len, META, META_BYTES);
	bool wanted = t->meta_prefix == META_ALWAYS || (t->meta_prefix == META_FIRST && is_first);
	int rc = 0;

	if (wanted && (t->meta_doubles || !has_one))
		rc = buf_add(out, META, META_BYTES);
	for (size_t at = 0; rc == 0 && at < len;) {
		const char *blank = memchr(text + at, ' ', len - at);
		size_t stop = blank ? (size_t)(blank - text) : len;
		rc = buf_add(out, text + at, stop - at);
		if (rc == 0 && blank)
			rc = buf_add(out, META, META_BYTES);
		at = stop + 1;
	}
	return rc;
}

int normal_blanks(const struct tokenizer *t, bool is_first, struct buf *room, const char **text,
		  size_t *len)
{
	if (*len == 0)
		return 0;
	room->len = 0;
	if (put_meta(t, is_first, *text, *len, room))
		return -1;
	*text = room->data;
	*len = room->len;
	return 0;
}
