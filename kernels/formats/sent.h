/* SPDX-License-Identifier: MIT */
/* sent.h - weights on their way to other ranks as codes of 8 bits under one scale for a matrix, on
 * hosts and on devices.
 *
 * The scale is that of the whole matrix (scale.h, SCALE_FP32, to nearest), so a product makes the
 * same codes of what has come as of what was sent: a number that came is a code times the scale, up
 * to an error of less than half a step of the format, and comes back to that code; and the largest
 * code comes as +-amax itself, so that amax, and with it the scale, is the same to the bit. It
 * holds where weights are kept in bf16, too: amax is one of them. */
#ifndef KERNELS_FORMATS_SENT_H
#define KERNELS_FORMATS_SENT_H

#include "kernels/formats/scale.h"

struct sent_rule {
	struct scale_rule scale;
	struct grid grid;
	uint32_t most, nan, sign, mantissa; /* codes; where the sign is, how long the mantissa */
	float power;                        /* of a code's bits as those of an fp32 */
};

/* Formats of 8 bits that are FORMAT_FN or FORMAT_IEEE. */
static inline struct sent_rule sent_rule_of(const struct operand_cast *cast)
{
	const struct format_cast how = { ROUND_NEAREST_EVEN, true };
	struct sent_rule r;

	r.scale = scale_rule_of(cast);
	r.grid = grid_of(&cast->format, &how);
	r.most = format_max_code(&cast->format);
	r.nan = format_encode(&cast->format, float_of(0x7fc00000u), &how, 0) & 0x7fu;
	r.sign = 0x80;
	r.mantissa = cast->format.mantissa;
	r.power = float_of((uint32_t)(127 + 127 - cast->format.bias) << 23);
	return r;
}

FORMAT_INLINE struct scale sent_scale(const struct sent_rule *r, float amax)
{
	return scale_by_rule(&r->scale, amax, 0, r->grid.max);
}

FORMAT_INLINE uint8_t sent_code(const struct sent_rule *r, const struct scale *s, float x)
{
	float y = round_to_grid(&r->grid, x * s->multiply, ROUND_NEAREST_EVEN, 0);
	uint32_t sign = bits_of(y) >> 31 ? r->sign : 0;
	float a = float_of(bits_of(y) & 0x7fffffffu);
	uint32_t field = field_of(&r->grid, a);

	if (y != y)
		return (uint8_t)(r->nan | sign);
	return (uint8_t)((((field - r->grid.lowest) >> 23 << r->mantissa) +
			  (uint32_t)(int32_t)(a * float_of(r->grid.inverse - field))) |
			 sign);
}

FORMAT_INLINE float sent_number(const struct sent_rule *r, const struct scale *s, float amax,
				uint8_t code)
{
	uint32_t magnitude = code & 0x7fu;
	float a = float_of(magnitude << (23 - r->mantissa)) * r->power * s->scale;

	a = magnitude == r->most ? amax : a;
	a = magnitude > r->most ? float_of(0x7fc00000u) : a;
	return code & r->sign ? -a : a;
}

#endif
