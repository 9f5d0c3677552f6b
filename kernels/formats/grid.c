/* SPDX-License-Identifier: MIT */
/* grid.c - the constants of a format's grid, from its definition. */
#include "kernels/formats/grid.h"

#include <math.h>

struct grid grid_of(const struct format *f, const struct format_cast *how)
{
	bool integer = f->kind == FORMAT_INTEGER;
	uint32_t y = f->mantissa, lowest = integer ? 127u + y : (uint32_t)(128 - f->bias);
	float max = format_max(f), inf = format_decode(f, format_encode(f, INFINITY, how, 0));
	bool stays = how->rounding == ROUND_TOWARD_ZERO;

	return (struct grid){ .lowest = lowest << 23,
			      .unit = y << 23,
			      .inverse = (254 + y) << 23,
			      .limit = integer ? (float)(1u << y) : ldexpf(1, format_emax(f) + 1),
			      .max = max,
			      .beyond = stays ? max : inf,
			      .inf = inf,
			      .nan = format_decode(f, format_encode(f, NAN, how, 0)),
			      .extra = integer ? 1 : 0 };
}
