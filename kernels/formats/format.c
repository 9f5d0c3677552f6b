/* SPDX-License-Identifier: MIT */
/* format.c - the table of formats, and their definition in whole numbers. */
#include "kernels/formats/format.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A new format is one row here, when its name alone does not say it. Integers: the sign is the
 * mantissa's, and their unit is 1. */
/* clang-format off */
static const struct format formats[] = {
	{ "e4m3fn", FORMAT_FN, 8, 4, 3, 7 },
	{ "e5m2", FORMAT_IEEE, 8, 5, 2, 15 },
	{ "e4m3", FORMAT_IEEE, 8, 4, 3, 7 },
	{ "e3m4", FORMAT_IEEE, 8, 3, 4, 3 },
	{ "e4m3fnuz", FORMAT_FNUZ, 8, 4, 3, 8 },
	{ "e5m2fnuz", FORMAT_FNUZ, 8, 5, 2, 16 },
	{ "e3m2", FORMAT_FINITE, 6, 3, 2, 3 },
	{ "e2m3", FORMAT_FINITE, 6, 2, 3, 1 },
	{ "e2m1", FORMAT_FINITE, 4, 2, 1, 1 },
	{ "e8m0", FORMAT_SCALE, 8, 8, 0, 127 },
	{ "int8", FORMAT_INTEGER, 8, 0, 7, 0 },
	{ "int4", FORMAT_INTEGER, 4, 0, 3, 0 },
	{ "bf16", FORMAT_IEEE, 16, 8, 7, 127 },
	{ "fp16", FORMAT_IEEE, 16, 5, 10, 15 },
};
/* clang-format on */
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

const struct format *format_row(unsigned i)
{
	return i < FORMATS ? &formats[i] : NULL;
}

const char *format_names(void)
{
	return "e4m3fn, e5m2, e3m2, e2m3, e2m1, e8m0, int8, int4, bf16, fp16, or any eXmY of at "
	       "most 8 bits, with fn or fnuz behind it";
}

/* "eXmY", then what is behind it. */
static bool parse(const char *name, struct format *out)
{
	if (strlen(name) < 4 || name[0] != 'e' || !isdigit((unsigned char)name[1]) ||
	    name[2] != 'm' || !isdigit((unsigned char)name[3]))
		return false;
	const unsigned x = (unsigned)(name[1] - '0'), y = (unsigned)(name[3] - '0');
	if (x < 1 || 1 + x + y > 8)
		return false;
	const char *behind = name + 4;
	int bias = (1 << (x - 1)) - 1;
	enum format_kind kind = x + y == 7 && x > 1 && y > 0 ? FORMAT_IEEE : FORMAT_FINITE;
	if (strcmp(behind, "fn") == 0)
		kind = x + y == 7 ? FORMAT_FN : FORMAT_FINITE;
	else if (strcmp(behind, "fnuz") == 0)
		kind = FORMAT_FNUZ, bias++;
	else if (behind[0] != '\0')
		return false;
	*out = (struct format){ .kind = kind,
				.bits = (uint8_t)(1 + x + y),
				.exponent = (uint8_t)x,
				.mantissa = (uint8_t)y,
				.bias = (int16_t)bias };
	snprintf(out->name, sizeof(out->name), "%s", name);
	return true;
}

bool format_find(const char *name, struct format *out)
{
	for (unsigned i = 0; i < FORMATS; i++)
		if (strcmp(formats[i].name, name) == 0) {
			*out = formats[i];
			return true;
		}
	return parse(name, out);
}

/* --- codes that mean something ------------------------------------------------------------ */

static uint32_t magnitude_mask(const struct format *f)
{
	return (1u << (f->bits - 1)) - 1;
}

uint32_t format_max_code(const struct format *f)
{
	uint32_t all = magnitude_mask(f);

	switch (f->kind) {
	case FORMAT_IEEE:
		return (all >> f->mantissa << f->mantissa) - 1;
	case FORMAT_FN:
		return all - 1;
	case FORMAT_SCALE:
		return 254;
	default:
		return all;
	}
}

static uint32_t nan_code(const struct format *f)
{
	switch (f->kind) {
	case FORMAT_IEEE: /* quiet */
		return format_max_code(f) + 1 + (1u << (f->mantissa - 1));
	case FORMAT_FN:
		return magnitude_mask(f);
	case FORMAT_FNUZ:
		return 1u << (f->bits - 1);
	case FORMAT_SCALE:
		return 255;
	default:
		return format_max_code(f);
	}
}

/* What lies beyond the largest number. */
static uint32_t beyond(const struct format *f, bool saturate)
{
	if (saturate || f->kind == FORMAT_FINITE || f->kind == FORMAT_INTEGER)
		return format_max_code(f);
	return f->kind == FORMAT_IEEE ? format_max_code(f) + 1 : nan_code(f);
}

float format_max(const struct format *f)
{
	return format_decode(f, format_max_code(f));
}

int format_emax(const struct format *f)
{
	return ilogbf(format_max(f));
}

static uint32_t with_sign(const struct format *f, uint32_t magnitude, bool negative)
{
	if (!negative || f->kind == FORMAT_SCALE)
		return magnitude;
	if (f->kind == FORMAT_INTEGER) /* two's complement */
		return (~magnitude + 1) & ((1u << f->bits) - 1);
	if (f->kind == FORMAT_FNUZ && (magnitude == 0 || magnitude == nan_code(f)))
		return magnitude;
	return magnitude | 1u << (f->bits - 1);
}

/* --- encode ----------------------------------------------------------------------------------- */

/* The exponent of the numbers without a leading 1: below it they lie no closer together. */
static int lowest(const struct format *f)
{
	if (f->kind == FORMAT_INTEGER)
		return f->mantissa;
	return f->kind == FORMAT_SCALE ? -f->bias : 1 - f->bias;
}

/* units * 2^-32, 32 bits of it behind the point, as a whole number. */
static uint64_t round_units(uint64_t units, enum rounding rounding, uint32_t random)
{
	uint64_t whole = units >> 32, part = units & UINT32_MAX;

	switch (rounding) {
	case ROUND_NEAREST_EVEN:
		return whole + (part > 1ull << 31 || (part == 1ull << 31 && whole % 2 == 1));
	case ROUND_STOCHASTIC: /* u < part, in units of 2^-32 */
		return whole + ((uint64_t)(random >> 8) << 8 < part);
	default:
		return whole;
	}
}

/* |x|, a finite number above 0, in units of the format's last place at it: 32 bits behind the
 * point, of which the last is set for all that lies behind it. */
static uint64_t in_units(const struct format *f, float x, int *exponent)
{
	int e;
	uint64_t significand = (uint64_t)ldexpf(frexpf(x, &e), 24); /* x = significand 2^(e-24) */

	*exponent = e - 1 > lowest(f) ? e - 1 : lowest(f);
	int shift = e - 24 - (*exponent - f->mantissa) + 32;
	if (shift >= 0)
		return significand << shift;
	if (shift < -40)
		return 1;
	uint64_t kept = significand >> -shift;
	return kept << -shift == significand ? kept : kept | 1;
}

static uint32_t encode_magnitude(const struct format *f, float x, const struct format_cast *how,
				 uint32_t random)
{
	int exponent;

	if (isinf(x))
		return beyond(f, how->saturate);
	uint64_t n = round_units(in_units(f, x, &exponent), how->rounding, random);
	uint64_t code = ((uint64_t)(exponent - lowest(f)) << f->mantissa) + n;
	if (f->kind == FORMAT_SCALE && code > 0) /* there is no zero: code 0 is 2^-127 */
		code--;
	if (code <= format_max_code(f))
		return (uint32_t)code;
	return how->rounding == ROUND_TOWARD_ZERO ? format_max_code(f) : beyond(f, how->saturate);
}

uint32_t format_encode(const struct format *f, float x, const struct format_cast *how,
		       uint32_t random)
{
	bool negative = signbit(x);

	if (isnan(x) || (f->kind == FORMAT_SCALE && x <= 0))
		return f->kind == FORMAT_SCALE ? nan_code(f) : with_sign(f, nan_code(f), negative);
	if (x == 0)
		return with_sign(f, 0, negative);
	/* One more than the positive side has: what would round to it, or beyond. */
	const struct format wide = { .kind = FORMAT_INTEGER, .bits = 16, .mantissa = 15 };
	if (f->kind == FORMAT_INTEGER && negative &&
	    encode_magnitude(&wide, -x, how, random) > format_max_code(f))
		return 1u << f->mantissa;
	return with_sign(f, encode_magnitude(f, fabsf(x), how, random), negative);
}

/* --- decode ----------------------------------------------------------------------------------- */

static float decode_integer(const struct format *f, uint32_t code)
{
	int32_t value = (int32_t)(code & ((1u << f->bits) - 1));

	return (float)(value >> (f->bits - 1) ? value - (1 << f->bits) : value);
}

static bool is_nan_code(const struct format *f, uint32_t code)
{
	if (f->kind == FORMAT_IEEE)
		return (code & magnitude_mask(f)) > format_max_code(f) + 1;
	if (f->kind == FORMAT_FN)
		return (code & magnitude_mask(f)) == nan_code(f);
	return f->kind == FORMAT_FNUZ && code == nan_code(f);
}

float format_decode(const struct format *f, uint32_t code)
{
	code &= (1u << f->bits) - 1;
	if (f->kind == FORMAT_INTEGER)
		return decode_integer(f, code);
	if (f->kind == FORMAT_SCALE)
		return code == 255 ? NAN : ldexpf(1, (int)code - f->bias);
	float sign = code >> (f->bits - 1) ? -1.0f : 1.0f;
	uint32_t magnitude = code & magnitude_mask(f);
	int exponent = (int)(magnitude >> f->mantissa);
	float significand = (float)(magnitude & ((1u << f->mantissa) - 1));
	if (is_nan_code(f, code))
		return copysignf(NAN, sign);
	if (f->kind == FORMAT_IEEE && magnitude == format_max_code(f) + 1)
		return sign * INFINITY;
	if (exponent > 0)
		significand += (float)(1 << f->mantissa);
	else
		exponent = 1;
	return sign * ldexpf(significand, exponent - f->bias - f->mantissa);
}
