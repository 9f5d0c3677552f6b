/* SPDX-License-Identifier: MIT */
/* fnv.h - a digest for names of files and "is it still the same": FNV-1a, 64 bits.
 *
 * Not for anything that somebody might forge: it takes a second to find another text of the same
 * digest. Source: draft-eastlake-fnv, section 2. */
#ifndef COMMON_BASE_FNV_H
#define COMMON_BASE_FNV_H

#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)

/* One more unit: a byte in the original, any number here. */
static inline uint64_t fnv_add(uint64_t digest, uint64_t unit)
{
	return (digest ^ unit) * UINT64_C(0x100000001b3);
}

/* The bytes of text, without its end, behind what digest has. */
static inline uint64_t fnv_add_text(uint64_t digest, const char *text)
{
	for (; *text; text++)
		digest = fnv_add(digest, (unsigned char)*text);
	return digest;
}

static inline uint64_t fnv_text(const char *text)
{
	return fnv_add_text(FNV_START, text);
}

#endif
