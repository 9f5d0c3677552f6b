/* SPDX-License-Identifier: MIT */
/* codes.c - vectors of fp32 to codes of a format, and back.
 *
 * A task owns BLOCK elements. The rounding is a constant of each loop, so that compilers make
 * vectors of it; random numbers are made a piece at a time, beside the codes. */
#include "kernels/cpu/round.h"

#include <math.h>

enum { BLOCK = 65536, PIECE = 256, TABLE = 256 };

/* --- encode ----------------------------------------------------------------------------------- */

/* What a loop over codes needs beside the grid. */
struct coding {
	const struct encoding *e;
	const float *x;
	void *codes;
	size_t count;
	struct grid grid;
	uint32_t max_code, beyond, inf, nan; /* below the sign */
	uint32_t sign;                       /* where it goes: bits down from an fp32's */
	uint32_t no_sign; /* a code that has none, beside 0: fnuz's NaN; 0: all have one */
	uint32_t mask;    /* the bits of a code */
};

CPU_INLINE uint32_t code_of(const struct coding *c, float x, enum rounding rounding,
			    uint32_t random)
{
	const struct grid *g = &c->grid;
	float a = within_reach(g, x);
	uint32_t field = field_of(g, a);
	float n = round_units(a * float_of(g->inverse - field), rounding, random);
	uint32_t code = (((field - g->lowest) >> 23) << (g->unit >> 23)) + (uint32_t)(int32_t)n;

	code = code > c->max_code ? c->beyond : code;
	code = (bits_of(x) & 0x7fffffffu) == 0x7f800000u ? c->inf : code;
	code = x != x ? c->nan : code;
	uint32_t sign = (bits_of(x) & 0x80000000u) >> c->sign;
	sign = c->no_sign && (code == 0 || code == c->no_sign) ? 0 : sign;
	return code | sign;
}

CPU_INLINE uint32_t integer_code(const struct coding *c, float x, enum rounding rounding,
				 uint32_t random)
{
	return (uint32_t)(int32_t)round_to_grid(&c->grid, x, rounding, random) & c->mask;
}

CPU_INLINE uint32_t bf16_code(const struct coding *c, float x, enum rounding rounding,
			      uint32_t random)
{
	uint32_t code = round_to_bf16(x, rounding, random) >> 16;

	return (code & 0x7fffu) == 0x7f80u ? c->inf | (code & 0x8000u) : code;
}

/* e8m0: the exponent, and up from half way on, for a number of one digit is even there. Below
 * 2^-126 the part of fp32 begins with the digit that others hide. */
CPU_INLINE uint32_t scale_code(const struct coding *c, float x, enum rounding rounding,
			       uint32_t random)
{
	uint32_t bits = bits_of(x), field = bits >> 23, part = bits & 0x7fffffu, up = 0;

	uint32_t tiny = part >= 0x400000u ? (part - 0x400000u) * 2 : 0;
	part = field == 0 ? tiny : part;
	if (rounding == ROUND_NEAREST_EVEN)
		up = part >= 0x400000u;
	else if (rounding == ROUND_STOCHASTIC)
		up = (random >> 8) < part << 1;
	uint32_t code = field + up;
	code = code > c->max_code ? c->inf : code;
	return x > 0.0f ? code : 255;
}

typedef uint32_t one_code(const struct coding *c, float x, enum rounding rounding, uint32_t random);

CPU_INLINE void encode_piece(const struct coding *c, size_t first, size_t count, one_code *one,
			     enum rounding rounding)
{
	const struct coding constants = *c;
	const float *x = c->x + first;
	uint32_t random[PIECE] = { 0 }, code[PIECE];

	if (rounding == ROUND_STOCHASTIC)
		random_words(random, &c->e->random, c->e->first + first, count);
	for (size_t i = 0; i < count; i++)
		code[i] = one(&constants, x[i], rounding, random[i]);
	uint16_t *wide = (uint16_t *)c->codes + first;
	uint8_t *narrow = (uint8_t *)c->codes + first;
	if (c->e->format.bits > 8)
		for (size_t i = 0; i < count; i++)
			wide[i] = (uint16_t)code[i];
	else
		for (size_t i = 0; i < count; i++)
			narrow[i] = (uint8_t)code[i];
}

CPU_INLINE void encode_by(const struct coding *c, size_t first, size_t count, one_code *one)
{
	switch (c->e->how.rounding) {
	case ROUND_STOCHASTIC:
		encode_piece(c, first, count, one, ROUND_STOCHASTIC);
		break;
	case ROUND_TOWARD_ZERO:
		encode_piece(c, first, count, one, ROUND_TOWARD_ZERO);
		break;
	default:
		encode_piece(c, first, count, one, ROUND_NEAREST_EVEN);
	}
}

static void encode_task(const void *args, size_t index, unsigned worker)
{
	const struct coding *c = args;
	size_t end = cpu_min(c->count, (index + 1) * BLOCK), count;

	(void)worker;
	for (size_t at = index * BLOCK; at < end; at += count) {
		count = cpu_min(PIECE, end - at);
		if (c->e->format.kind == FORMAT_INTEGER)
			encode_by(c, at, count, integer_code);
		else if (c->e->format.kind == FORMAT_SCALE)
			encode_by(c, at, count, scale_code);
		else if (c->e->format.exponent == 8)
			encode_by(c, at, count, bf16_code);
		else
			encode_by(c, at, count, code_of);
	}
}

void cpu_encode(struct device *dev, void *codes, const float *x, size_t count,
		const struct encoding *e)
{
	const struct format *f = &e->format;
	uint32_t most = format_max_code(f), inf = format_encode(f, INFINITY, &e->how, 0);
	uint32_t nan = format_encode(f, NAN, &e->how, 0);
	const struct coding c = {
		.e = e,
		.x = x,
		.codes = codes,
		.count = count,
		.grid = grid_of(f, &e->how),
		.max_code = most,
		.beyond = e->how.rounding == ROUND_TOWARD_ZERO ? most : inf,
		.inf = inf,
		.nan = nan,
		.sign = 32u - f->bits,
		.no_sign = f->kind == FORMAT_FNUZ ? nan : 0,
		.mask = (1u << f->bits) - 1,
	};

	pool_run(dev->pool, cpu_tasks(count, BLOCK), encode_task, &c);
}

/* --- decode ----------------------------------------------------------------------------------- */

struct decoding {
	const struct format *format;
	const void *codes;
	float *x;
	size_t count;
	float table[TABLE]; /* of all codes, where there are so few */
};

static void decode_task(const void *args, size_t index, unsigned worker)
{
	const struct decoding *d = args;
	size_t end = cpu_min(d->count, (index + 1) * BLOCK);
	const uint16_t *wide = d->codes;
	const uint8_t *narrow = d->codes;

	(void)worker;
	for (size_t i = index * BLOCK; i < end; i++)
		if (d->format->bits > 8)
			d->x[i] = format_decode(d->format, wide[i]);
		else
			d->x[i] = d->table[narrow[i]];
}

void cpu_decode(struct device *dev, float *x, const void *codes, size_t count,
		const struct format *f)
{
	struct decoding d = { .format = f, .codes = codes, .x = x, .count = count };

	for (uint32_t code = 0; f->bits <= 8 && code < TABLE; code++)
		d.table[code] = format_decode(f, code);
	pool_run(dev->pool, cpu_tasks(count, BLOCK), decode_task, &d);
}
