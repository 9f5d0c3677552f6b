/* SPDX-License-Identifier: MIT */
/* crc32c.c - bit by bit: a few dozen bytes a step are no reason for tables. */
#include "worker/lbworker/telemetry/crc32c.h"

uint32_t crc32c(const void *bytes, size_t count)
{
	const uint32_t polynomial = 0x82f63b78u; /* reflected */
	const unsigned char *at = bytes;
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < count; i++) {
		crc ^= at[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1u ? polynomial : 0);
	}
	return ~crc;
}
