/* SPDX-License-Identifier: MIT */
/* crc32c.h - the Castagnoli CRC (RFC 3720, appendix B.4), as TensorBoard's records use it. */
#ifndef LBWORKER_CRC32C_H
#define LBWORKER_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t count);

#endif
