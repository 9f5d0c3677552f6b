/* SPDX-License-Identifier: MIT */
/* unicode/ - characters: what each is, and where a text of them is cut into words.
 *
 * unicode.h - what a character is, as split patterns ask for it, and NFC. Unicode 16. */
#ifndef LBWORKER_UNICODE_H
#define LBWORKER_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/mem.h"

enum unicode_kind {
	UNI_UPPER = 1,    /* Lu, Lt */
	UNI_LOWER = 2,    /* Ll */
	UNI_CASELESS = 4, /* Lm, Lo */
	UNI_LETTER = 7,
	UNI_MARK = 8,
	UNI_NUMBER = 16,
	UNI_SPACE = 32, /* White_Space */
	UNI_STIRS = 64, /* may change under NFC, or what stands before it */
	UNI_PUNCTUATION =
		128, /* as Hugging Face's library has it: Unicode 8, and all of ASCII's symbols */
};

enum { UNI_LIMIT = 0x110000, UNI_BAD = UNI_LIMIT };

/* Kinds of all code points, and 0 for UNI_BAD; valid after unicode_init. */
extern uint8_t unicode_kinds_of[UNI_LIMIT + 1];
/* Any number of times, from any thread. */
void unicode_init(void);

/* The character at `at`, which is before `end`; *width its bytes. A byte that begins no well-formed
 * one is UNI_BAD, of width 1. */
uint32_t unicode_decode_long(const unsigned char *at, const unsigned char *end, unsigned *width);
static inline uint32_t unicode_decode(const unsigned char *at, const unsigned char *end,
				      unsigned *width)
{
	if (*at >= 0x80)
		return unicode_decode_long(at, end, width);
	*width = 1;
	return *at;
}
/* Bytes written to out[4]. */
unsigned unicode_encode(uint32_t character, unsigned char *out);

/* text[0..len) in NFC, added to `out`; bytes that are no UTF-8 stay. -1 when out is full. */
int unicode_nfc(const char *text, size_t len, struct buf *out);

/* Adds the characters of a general category ("L", "Lu") that came after Unicode 14, as ranges
 * \x{10ec2}-\x{10ec4} of a regular expression. -1 when out is full. */
int unicode_young(const char *category, struct buf *out);

#endif
