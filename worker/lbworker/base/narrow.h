/* SPDX-License-Identifier: MIT */
/* narrow.h - bfloat16 and IEEE 754 half precision to fp32 and back, for files of weights.
 *
 * Widening is exact. Narrowing rounds to nearest, ties to even; too large becomes infinite, NaN
 * stays NaN. */
#ifndef LBWORKER_NARROW_H
#define LBWORKER_NARROW_H

#include <stddef.h>
#include <stdint.h>

/* From any alignment: not all who write safetensors pad the header. */
void narrow_from_bf16(float *to, const void *from, size_t count);
void narrow_from_f16(float *to, const void *from, size_t count);
void narrow_to_bf16(uint16_t *to, const float *from, size_t count);
void narrow_to_f16(uint16_t *to, const float *from, size_t count);

#endif
