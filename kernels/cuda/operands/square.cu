/* SPDX-License-Identifier: MIT */
/* square.cu - an operand as numbers of few bits in one pass, where what shares a scale lies within
 * a square of 128 x 128: scales, then codes as it lies, codes turned, each with scales of its own,
 * or codes times their scales. To the bit what scales.cu and quantize.cu make in passes of their
 * own.
 *
 * A block owns a square. A thread reads 8 x 8 elements, lanes side by side along the rows: the
 * largest of each tile by shuffles and atomicMax in shared memory, a maximum knows no order. Then
 * it owns tiles: their scales. Then of each quarter of the square 16 elements of a row (as
 * quantize.cu): by now they come from the cache. */
#include "kernels/cuda/ops/casting.cuh"

enum { SQUARE = 2 * SIDE, TILES = 1024, SIDES = 2 };
enum { AS_IT_LIES, TURNED };
static_assert(EACH == 8, "16 lanes read a row of a square");

struct square_side {
	struct casting c; /* codes, or values: what is wanted; else neither */
	struct scale_rule rule;
	struct scale *scale;
	const float *most; /* the largest of all, for scales of two levels */
	bool is_wanted;
};

struct squaring {
	struct square_side side[SIDES];
	size_t across; /* squares in a row */
};

/* Of a tile in its square. */
DEVICE size_t tile_in(const struct tiles &t, size_t row, size_t column)
{
	return row / t.rows * (SQUARE / t.columns) + column / t.columns;
}

/* Eight neighbours in a row: the largest of all lanes that share a tile with them, where tiles are
 * rows. */
DEVICE void add_row(const struct tiles &t, unsigned *amax, unsigned most, size_t row, size_t column)
{
	unsigned lanes = (unsigned)(t.columns / EACH);

	for (unsigned width = 1; width < lanes; width *= 2)
		most = larger(most, __shfl_xor_sync(0xffffffffu, most, (int)width));
	if (threadIdx.x % lanes == 0)
		atomicMax(&amax[tile_in(t, row, column)], most);
}

template <typename T>
DEVICE void find_amax(const struct squaring &q, unsigned (*amax)[TILES], size_t top, size_t left)
{
	const struct casting &c = q.side[AS_IT_LIES].c; /* its shape is that of both */
	size_t column = threadIdx.x % (SQUARE / EACH) * EACH;
	size_t first = threadIdx.x / (SQUARE / EACH) * EACH;
	unsigned of_column[EACH] = { 0 }, all = 0;

	for (size_t j = 0; j < EACH; j++) {
		size_t row = first + j;
		bool is_there = top + row < c.rows && left + column < c.columns;
		unsigned of_row = 0;
		float x[EACH];
		if (is_there) {
			load<T, EACH>(x, c.in, ((top + row) * c.ld + left + column) / EACH);
#pragma unroll
			for (int k = 0; k < EACH; k++) {
				unsigned bits = bits_of(x[k]) & 0x7fffffffu;
				of_column[k] = larger(of_column[k], bits);
				of_row = larger(of_row, bits);
			}
		}
		all = larger(all, of_row);
		for (int s = 0; s < SIDES; s++)
			if (q.side[s].is_wanted && q.side[s].c.tiles.rows == 1)
				add_row(q.side[s].c.tiles, amax[s], of_row, row, column);
	}
	for (int s = 0; s < SIDES; s++) {
		const struct tiles &t = q.side[s].c.tiles;
		if (!q.side[s].is_wanted || t.rows == 1)
			continue;
		if (t.columns > 1)
			atomicMax(&amax[s][tile_in(t, first, column)], all);
#pragma unroll
		for (int k = 0; k < EACH; k++)
			if (t.columns == 1)
				atomicMax(&amax[s][tile_in(t, first, column + (size_t)k)],
					  of_column[k]);
	}
}

/* In place of the largest comes what to multiply with. */
DEVICE void find_scales(const struct square_side &s, unsigned *amax, size_t top, size_t left)
{
	const struct tiles &t = s.c.tiles;
	size_t right = SQUARE / t.columns, count = SQUARE / t.rows * right;
	float tensor = s.most ? tensor_scale_by_rule(&s.rule, *s.most) : 0.0f;

	for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
		size_t row = top + i / right * t.rows, column = left + i % right * t.columns;
		if (row >= s.c.rows || column >= s.c.columns)
			continue;
		struct scale by = scale_by_rule(&s.rule, float_of(amax[i]), tensor, s.c.grid.max);
		s.scale[row / t.rows * t.right + column / t.columns] = by;
		amax[i] = bits_of(by.multiply);
	}
}

/* Of four elements of a row. */
DEVICE void multipliers_of(const struct square_side &s, const unsigned *multiply, size_t row,
			   size_t column, float (&by)[4])
{
	size_t at = tile_in(s.c.tiles, row, column);

#pragma unroll
	for (int j = 0; j < 4; j++)
		by[j] = float_of(multiply[s.c.tiles.columns == 1 ? at + (size_t)j : at]);
}

/* Four elements of a row, rounded, before their scales are put back. */
template <typename T>
DEVICE void four_rounded(const struct square_side &s, const unsigned *multiply, size_t top,
			 size_t left, size_t row, size_t column, float (&x)[4])
{
	const struct casting &c = s.c;
	uint32_t random[4] = { 0 };
	float by[4];

	load<T, 4>(x, c.in, ((top + row) * c.ld + left + column) / 4);
	if (c.rounding == ROUND_STOCHASTIC)
		draw(random, c, (top + row) * c.columns + left + column);
	multipliers_of(s, multiply, row, column, by);
#pragma unroll
	for (int j = 0; j < 4; j++)
		x[j] = rounded_to(c, x[j], by[j], random[j]);
}

template <typename T>
DEVICE struct sixteen run_of_codes(const struct square_side &s, const unsigned *multiply,
				   size_t top, size_t left, size_t row, size_t column)
{
	struct sixteen codes;

#pragma unroll
	for (int j = 0; j < RUN / 4; j++) {
		size_t at = column + 4 * (size_t)j;
		float x[4];
		if (s.c.fp8 != NO_FP8) {
			float by[4];
			multipliers_of(s, multiply, row, at, by);
			load<T, 4>(x, s.c.in, ((top + row) * s.c.ld + left + at) / 4);
			codes.four[j] = four_fp8(s.c, x, by);
			continue;
		}
		four_rounded<T>(s, multiply, top, left, row, at, x);
		codes.four[j] = 0;
#pragma unroll
		for (int b = 0; b < 4; b++)
			codes.four[j] |= code_of(s.c, x[b]) << 8 * b;
	}
	return codes;
}

template <typename T>
DEVICE void put_run_of_values(const struct square_side &s, const unsigned *multiply, size_t top,
			      size_t left, size_t row, size_t column)
{
	const struct tiles &t = s.c.tiles;

#pragma unroll
	for (int j = 0; j < RUN / 4; j++) {
		size_t at = column + 4 * (size_t)j;
		const struct scale *by = s.scale + (top + row) / t.rows * t.right;
		float x[4];
		four_rounded<T>(s, multiply, top, left, row, at, x);
#pragma unroll
		for (int b = 0; b < 4; b++)
			x[b] *= by[(left + at + (size_t)b) / t.columns].scale;
		store<T, 4>(s.c.values, ((top + row) * s.c.columns + left + at) / 4, x);
	}
}

template <typename T> KERNEL(BLOCK) cast_square(struct squaring q)
{
	after_earlier();
	__shared__ unsigned amax[SIDES][TILES];
	__shared__ struct code_block block;
	const struct square_side &lies = q.side[AS_IT_LIES], &turned = q.side[TURNED];
	const struct casting &c = lies.c;
	size_t top = blockIdx.x / q.across * SQUARE, left = blockIdx.x % q.across * SQUARE;
	size_t r = threadIdx.x / RUNS, run = threadIdx.x % RUNS * RUN;

	for (size_t i = threadIdx.x; i < SIDES * TILES; i += blockDim.x)
		amax[i / TILES][i % TILES] = 0;
	__syncthreads();
	find_amax<T>(q, amax, top, left);
	__syncthreads();
	for (int s = 0; s < SIDES; s++)
		if (q.side[s].is_wanted)
			find_scales(q.side[s], amax[s], top, left);
	__syncthreads();
	for (size_t quarter = 0; quarter < 4; quarter++) {
		size_t down = quarter / 2 * SIDE, across = quarter % 2 * SIDE;
		size_t row = down + r, column = across + run;
		bool is_there = top + row < c.rows && left + column < c.columns;
		if (is_there && lies.is_wanted && lies.c.values)
			put_run_of_values<T>(lies, amax[AS_IT_LIES], top, left, row, column);
		else if (is_there && lies.is_wanted)
			*(struct sixteen *)(lies.c.codes + (top + row) * c.columns + left +
					    column) = run_of_codes<T>(lies, amax[AS_IT_LIES], top,
								      left, row, column);
		if (!turned.is_wanted)
			continue;
		if (is_there)
			put_run(block, r, run,
				run_of_codes<T>(turned, amax[TURNED], top, left, row, column));
		__syncthreads();
		row = left + across + r; /* of the turned one */
		column = top + down + run;
		if (row < c.columns && column < c.rows)
			*(struct sixteen *)(turned.c.codes + row * c.rows +
					    column) = turned_run(block, r, run);
		__syncthreads();
	}
}

/* --- the launch ------------------------------------------------------------------------------- */

static bool is_in_square(size_t n)
{
	return n == 1 || n == 16 || n == 32 || n == 64 || n == SQUARE;
}

static bool is_square_tile(const struct operand_cast *c)
{
	bool is_row = c->along > 1 && c->across == 1, is_square = c->along == c->across;

	return c->along > 1 && is_in_square(c->along) && is_in_square(c->across) &&
	       (is_row || is_square) && c->scale != SCALE_NONE && !c->hadamard &&
	       !c->four_over_six && c->history == 0;
}

/* Codes two in a byte, and both orders at once under the same scales, are quantize.cu's. */
static bool fits(struct device *dev, const struct few_bits *f)
{
	const struct operand_use *use = f->use;
	bool is_type = dev->compute != COMPUTE_BF16 || !(f->in_fp32 || f->values_fp32);
	uintptr_t places = (uintptr_t)f->in | (uintptr_t)f->codes | (uintptr_t)f->values;
	bool has_most = use->cast->scale != SCALE_E4M3 || (use->amax && use->amax_known);

	return is_square_tile(use->cast) && is_type && has_most && !f->turned &&
	       (!f->codes || f->layout != LAYOUT_E4M3) && places % 16 == 0 &&
	       f->shape.rows % RUN == 0 && f->shape.columns % RUN == 0 && f->shape.ld % EACH == 0;
}

static void add_side(struct squaring *q, const struct few_bits *f, struct scale *scale)
{
	const struct operand_cast *cast = f->use->cast;
	const struct format_cast how = { cast->rounding, true };
	bool along = f->shape.k_along_memory, lies = f->values || along;
	struct square_side *s = &q->side[lies ? AS_IT_LIES : TURNED];

	s->c = casting_of(f, scale, grid_of(&cast->format, &how));
	s->c.codes = f->codes;
	s->c.values = f->values;
	/* of their full size, also where the operand is smaller */
	s->c.tiles.rows = along ? cast->across : cast->along;
	s->c.tiles.columns = along ? cast->along : cast->across;
	s->rule = scale_rule_of(cast);
	s->scale = scale;
	s->most = cast->scale == SCALE_E4M3 ? f->use->amax : NULL;
	s->is_wanted = true;
}

extern "C" bool cuda_few_bits_at_once(struct device *dev, const struct place *at,
				      const struct few_bits *f, size_t count)
{
	size_t bytes[SIDES] = { 0 };
	struct squaring q = {};

	for (size_t i = 0; i < count; i++) {
		const struct tiles t = tiles_of(f[i].use->cast, &f[i].shape);
		if (!fits(dev, &f[i]))
			return false;
		bytes[i] = (t.down * t.right * sizeof(struct scale) + 15) / 16 * 16;
	}
	char *memory = (char *)cuda_scratch(dev, at, bytes[0] + bytes[1]);
	if (!memory)
		return true; /* a failure, which is kept */
	for (size_t i = 0; i < count; i++)
		add_side(&q, &f[i], (struct scale *)(memory + i * bytes[0]));
	if (!q.side[AS_IT_LIES].is_wanted)
		q.side[AS_IT_LIES].c = q.side[TURNED].c;
	q.across = blocks_for(f->shape.columns, SQUARE);
	launch(dev, *at, EITHER(dev, cast_square), blocks_for(f->shape.rows, SQUARE) * q.across,
	       BLOCK, 0, q);
	for (size_t i = 0; i < count; i++)
		if (f[i].scales)
			cuda_lay_scales(dev, at, &f[i], (struct scale *)(memory + i * bytes[0]));
	return true;
}
