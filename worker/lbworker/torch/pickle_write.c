/* SPDX-License-Identifier: MIT */
/* pickle_write.c - texts and numbers as opcodes. */
#include "worker/lbworker/torch/pickle_write.h"

#include <string.h>

static void put_number(struct buf *b, uint64_t value, size_t bytes)
{
	unsigned char text[8];

	for (size_t i = 0; i < bytes; i++)
		text[i] = (unsigned char)(value >> 8 * i);
	(void)buf_add(b, text, bytes);
}

void pickle_put(struct buf *b, const char *opcodes)
{
	(void)buf_add(b, opcodes, strlen(opcodes));
}

void pickle_put_text(struct buf *b, const char *text)
{
	pickle_put(b, "X"); /* BINUNICODE */
	put_number(b, strlen(text), 4);
	pickle_put(b, text);
}

/* BININT, or LONG1 of nine bytes */
void pickle_put_size(struct buf *b, uint64_t value)
{
	if (value <= INT32_MAX) {
		pickle_put(b, "J");
		put_number(b, value, 4);
		return;
	}
	pickle_put(b, "\x8a\x09");
	put_number(b, value, 8);
	put_number(b, 0, 1);
}

/* BINFLOAT: big-endian */
void pickle_put_real(struct buf *b, double value)
{
	unsigned char text[8];
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)(bits >> 8 * (7 - i));
	pickle_put(b, "G");
	(void)buf_add(b, text, sizeof(text));
}
