/* SPDX-License-Identifier: MIT */
/* casting.cuh - from a number of an operand, and its scale, to one of few bits and its code. */
#ifndef KERNELS_CUDA_CASTING_CUH
#define KERNELS_CUDA_CASTING_CUH

#include "kernels/cuda/ops/quantize.cuh"

/* What one instruction makes two codes of, as the cast asks for: to nearest, held within the
 * largest number (PTX ISA: cvt.rn.satfinite, from 8.9 on). */
enum fp8 { NO_FP8, FP8_E4M3, FP8_E5M2 };

struct casting {
	const void *in;
	void *values;
	uint8_t *codes, *turned; /* as the operand lies, and the other way */
	size_t rows, columns, ld, vectors;
	struct tiles tiles;
	const struct scale *scale;
	struct grid grid;
	enum rounding rounding;
	bool is_bf16;
	struct random_stream random;
	const struct random_stream *now;
	/* of codes */
	uint32_t mantissa, sign, mask, nan;
	bool is_integer, has_one_zero;
	bool in_halves; /* of bytes */
	enum fp8 fp8;
};

/* Masks, not a choice between two places: where one is an argument, AMD's compiler keeps it in
 * memory. */
DEVICE struct random_stream stream_of(const struct casting &c)
{
	uint32_t given = c.now ? 0 : ~0u;
	uint64_t key = c.now ? c.now->key : 0;
	uint32_t step = c.now ? c.now->step : 0;

	key |= c.random.key & ((uint64_t)given << 32 | given);
	step |= c.random.step & given;
	return { key, c.random.tensor, step };
}

/* The number that x becomes, before its scale is put back. */
DEVICE float rounded_to(const struct casting &c, float x, float multiply, uint32_t random)
{
	if (c.is_bf16)
		return float_of(round_to_bf16(x, c.rounding, random));
	return round_to_grid(&c.grid, x * multiply, c.rounding, random);
}

/* The random numbers of V elements from `element` on, a multiple of 4; or of one, anywhere. */
template <int V> DEVICE void draw(uint32_t (&random)[V], const struct casting &c, uint64_t element)
{
	const struct random_stream s = stream_of(c);

#pragma unroll
	for (int j = 0; j < V; j += 4) {
		uint32_t words[4];
		random_block(words, &s, element / 4 + (uint64_t)(j / 4));
		random[j] = words[0];
		random[j + 1] = words[1];
		random[j + 2] = words[2];
		random[j + 3] = words[3];
	}
}

DEVICE void draw(uint32_t (&random)[1], const struct casting &c, uint64_t element)
{
	const struct random_stream s = stream_of(c);

	random[0] = random_word(&s, element);
}

/* The code of a number of the grid. */
DEVICE uint32_t code_of(const struct casting &c, float x)
{
	uint32_t sign = (bits_of(x) & 0x80000000u) >> c.sign;

	if (c.is_integer)
		return (uint32_t)(int32_t)x & c.mask;
	if (x != x)
		return c.has_one_zero ? c.nan : c.nan | sign;
	float a = float_of(bits_of(x) & 0x7fffffffu);
	uint32_t field = field_of(&c.grid, a);
	uint32_t code = ((field - c.grid.lowest) >> 23 << c.mantissa) +
			(uint32_t)(int32_t)(a * float_of(c.grid.inverse - field));
	return code == 0 && c.has_one_zero ? 0 : code | sign;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
DEVICE uint32_t two_fp8(enum fp8 format, float low, float high)
{
	uint16_t two;

	if (format == FP8_E5M2)
		asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(high), "f"(low));
	else
		asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(high), "f"(low));
	return two;
}
#endif

/* Four of FP8 in a word, of x times `multiply` each: by the instruction; by the formulas, which are
 * the same to the bit, where there is none, and for NaN, whose sign they keep, and Inf. */
DEVICE uint32_t four_fp8(const struct casting &c, const float (&x)[4], const float (&multiply)[4])
{
	uint32_t four = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	float y[4], none = 0.0f;
#pragma unroll
	for (int j = 0; j < 4; j++) {
		y[j] = __fmul_rn(x[j], multiply[j]);
		none = __fmaf_rn(y[j], 0.0f, none); /* NaN of both */
	}
	if (none == none)
		return two_fp8(c.fp8, y[0], y[1]) | two_fp8(c.fp8, y[2], y[3]) << 16;
#endif
#pragma unroll
	for (int j = 0; j < 4; j++)
		four |= code_of(c, rounded_to(c, x[j], multiply[j], 0)) << 8 * j;
	return four;
}

/* Bytes of two words, numbered from the lowest, as PTX's prmt chooses them. */
DEVICE uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t which)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(a, b, which);
#else
	uint64_t both = (uint64_t)b << 32 | a;
	uint32_t out = 0;

	for (int i = 0; i < 4; i++)
		out |= (uint32_t)(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
	return out;
#endif
}

/* --- a block of codes, which is written as it lies, turned, or both: a thread has a run of a row
 * -- */

enum { SIDE = 64, RUN = 16, RUNS = SIDE / RUN };

struct alignas(RUN) sixteen {
	uint32_t four[RUN / 4];
};

struct code_block {
	uint8_t code[SIDE][SIDE + 4];
};

DEVICE void put_run(struct code_block &block, size_t row, size_t column,
		    const struct sixteen &codes)
{
#pragma unroll
	for (int j = 0; j < RUN; j++)
		block.code[row][column + (size_t)j] = (uint8_t)(codes.four[j / 4] >> 8 * (j % 4));
}

/* A run of what was a column. */
DEVICE struct sixteen turned_run(const struct code_block &block, size_t row, size_t column)
{
	struct sixteen codes;

#pragma unroll
	for (int j = 0; j < RUN / 4; j++) {
		codes.four[j] = 0;
#pragma unroll
		for (int b = 0; b < 4; b++)
			codes.four[j] |=
				(uint32_t)block.code[column + 4 * (size_t)j + (size_t)b][row]
				<< 8 * b;
	}
	return codes;
}

static inline enum fp8 fp8_of(const struct operand_cast *cast)
{
	const struct format *f = &cast->format;

	if (f->bits != 8 || cast->rounding != ROUND_NEAREST_EVEN)
		return NO_FP8;
	if (f->kind == FORMAT_FN && f->exponent == 4 && f->bias == 7)
		return FP8_E4M3;
	return f->kind == FORMAT_IEEE && f->exponent == 5 && f->bias == 15 ? FP8_E5M2 : NO_FP8;
}

static inline struct casting casting_of(const struct few_bits *f, const struct scale *scale,
					const struct grid &grid)
{
	const struct operand_cast *cast = f->use->cast;
	const struct format *format = &cast->format;
	const struct format_cast how = { cast->rounding, true };
	struct casting c = {};

	c.in = f->in;
	c.rows = f->shape.rows;
	c.columns = f->shape.columns;
	c.ld = f->shape.ld;
	c.tiles = tiles_of(cast, &f->shape);
	c.scale = scale;
	c.grid = grid;
	c.rounding = cast->rounding;
	c.is_bf16 = format->exponent == 8;
	c.random = f->use->random;
	c.now = f->use->now;
	c.mantissa = format->mantissa;
	c.sign = 32u - format->bits;
	c.mask = (1u << format->bits) - 1;
	c.nan = format_encode(format, NAN, &how, 0) &
		(c.mask >> (format->kind == FORMAT_FNUZ ? 0 : 1));
	c.is_integer = format->kind == FORMAT_INTEGER;
	c.has_one_zero = format->kind == FORMAT_FNUZ;
	c.in_halves = f->layout == LAYOUT_E4M3;
	c.fp8 = fp8_of(cast);
	return c;
}

#endif
