/* SPDX-License-Identifier: MIT */
/* quantize.cu - an operand as numbers of few bits, to the bit as kernels/cpu/narrow/quantize.c:
 * codes, or codes times their scales (scales.cu).
 *
 * Numbers: a thread owns V elements of a row. Codes: a block owns 64 x 64 elements, a thread 16 of
 * a row, which it writes as they lie, and through shared memory turned, or both. */
#include "kernels/cuda/ops/casting.cuh"

/* --- numbers and codes ------------------------------------------------------------------------ */

template <typename T, typename U, int V> KERNEL(BLOCK) cast_values(struct casting c)
{
	after_earlier();
	size_t i = flat_index(), row = i / c.vectors, column = i % c.vectors * V;
	float x[V];
	uint32_t random[V] = { 0 };

	if (row >= c.rows)
		return;
	load<T, V>(x, c.in, (row * c.ld + column) / V);
	if (c.rounding == ROUND_STOCHASTIC)
		draw(random, c, row * c.columns + column);
	size_t tile = row / c.tiles.rows * c.tiles.right;
	bool is_one = c.tiles.columns % V == 0;
	struct scale s = c.scale[tile + column / c.tiles.columns];
#pragma unroll
	for (int j = 0; j < V; j++) {
		if (!is_one)
			s = c.scale[tile + (column + (size_t)j) / c.tiles.columns];
		x[j] = rounded_to(c, x[j], s.multiply, random[j]);
		x[j] = c.is_bf16 ? x[j] : x[j] * s.scale;
	}
	store<U, V>(c.values, (row * c.columns + column) / V, x);
}

/* One element: in the middle of a matrix that is no multiple of 16, or whose scales change
 * there. */
template <typename T> DEVICE uint32_t code_at(const struct casting &c, size_t row, size_t column)
{
	float x = widen(((const T *)c.in)[row * c.ld + column]);
	size_t tile = row / c.tiles.rows * c.tiles.right + column / c.tiles.columns;
	uint32_t random = 0;

	if (c.rounding == ROUND_STOCHASTIC) {
		const struct random_stream s = stream_of(c);
		random = random_word(&s, row * c.columns + column);
	}
	return code_of(c, rounded_to(c, x, c.scale[tile].multiply, random));
}

/* Four codes of a row, a byte each; `at`: the tile of the first, where they share one. */
template <typename T>
DEVICE uint32_t four_codes(const struct casting &c, size_t row, size_t column,
			   const struct scale *at)
{
	uint32_t random[4] = { 0 }, four = 0;
	float x[4];

	load<T, 4>(x, c.in, (row * c.ld + column) / 4);
	if (c.rounding == ROUND_STOCHASTIC)
		draw(random, c, row * c.columns + column);
#pragma unroll
	for (int j = 0; j < 4; j++) {
		float multiply = c.tiles.columns == 1 ? at[j].multiply : at->multiply;
		four |= code_of(c, rounded_to(c, x[j], multiply, random[j])) << 8 * j;
	}
	return four;
}

struct alignas(8) eight {
	uint32_t four[2];
};

/* The lower halves of four bytes side by side. */
DEVICE uint32_t halves_of(uint32_t bytes)
{
	return (bytes & 0xfu) | (bytes >> 4 & 0xf0u) | (bytes >> 8 & 0xf00u) |
	       (bytes >> 12 & 0xf000u);
}

/* Codes from the `at`-th on. */
DEVICE void put_codes_at(uint8_t *to, size_t at, const struct sixteen &codes, bool in_halves)
{
	struct eight e;

	if (!in_halves) {
		*(struct sixteen *)(to + at) = codes;
		return;
	}
#pragma unroll
	for (int j = 0; j < 2; j++)
		e.four[j] = halves_of(codes.four[2 * j]) | halves_of(codes.four[2 * j + 1]) << 16;
	*(struct eight *)(to + at / 2) = e;
}

/* One, behind the one before; rows are even where two share a byte. */
DEVICE void put_code_at(uint8_t *to, size_t at, uint8_t code, bool in_halves)
{
	if (!in_halves)
		to[at] = code;
	else if (at % 2 == 0)
		to[at / 2] = code;
	else
		to[at / 2] = (uint8_t)(to[at / 2] | code << 4);
}

/* WIDE: rows, columns and ld are multiples of 16, and tiles are one column wide or a multiple of
 * 4. */
template <typename T, bool WIDE> KERNEL(BLOCK) cast_codes(struct casting c)
{
	after_earlier();
	__shared__ struct code_block block;
	size_t blocks = (c.columns + SIDE - 1) / SIDE;
	size_t top = blockIdx.x / blocks * SIDE, left = blockIdx.x % blocks * SIDE;
	size_t r = threadIdx.x / RUNS, run = threadIdx.x % RUNS * RUN;
	size_t row = top + r, column = left + run;

	if (WIDE && row < c.rows && column < c.columns) {
		struct sixteen codes;
		const struct scale *at = c.scale + row / c.tiles.rows * c.tiles.right;
#pragma unroll
		for (int j = 0; j < RUN / 4; j++) {
			size_t from = column + 4 * (size_t)j;
			codes.four[j] = four_codes<T>(c, row, from, at + from / c.tiles.columns);
		}
		put_run(block, r, run, codes);
		if (c.codes)
			put_codes_at(c.codes, row * c.columns + column, codes, c.in_halves);
	}
	for (size_t j = 0; !WIDE && j < RUN; j++)
		if (row < c.rows && column + j < c.columns) {
			uint8_t code = (uint8_t)code_at<T>(c, row, column + j);
			block.code[r][run + j] = code;
			if (c.codes)
				put_code_at(c.codes, row * c.columns + column + j, code,
					    c.in_halves);
		}
	if (!c.turned)
		return;
	__syncthreads();
	row = left + r; /* of the turned one */
	column = top + run;
	if (WIDE && row < c.columns && column < c.rows)
		put_codes_at(c.turned, row * c.rows + column, turned_run(block, r, run),
			     c.in_halves);
	for (size_t j = 0; !WIDE && j < RUN; j++)
		if (row < c.columns && column + j < c.rows)
			put_code_at(c.turned, row * c.rows + column + j, block.code[run + j][r],
				    c.in_halves);
}

/* --- launches --------------------------------------------------------------------------------- */

template <typename T> static void (*values_kernel(bool fp32, bool wide))(struct casting)
{
	return fp32 ? (wide ? cast_values<T, float, EACH> : cast_values<T, float, 1>)
		    : (wide ? cast_values<T, bf16, EACH> : cast_values<T, bf16, 1>);
}

static void put_values(struct device *dev, const struct place &at, const struct few_bits *f,
		       struct casting &c)
{
	bool wide = reads_wide(f, EACH) && (uintptr_t)f->values % 16 == 0;
	bool from_fp32 = f->in_fp32 || dev->compute != COMPUTE_BF16;
	bool to_fp32 = f->values_fp32 || dev->compute != COMPUTE_BF16;

	c.values = f->values;
	c.vectors = c.columns / (wide ? EACH : 1);
	launch_flat(dev, at,
		    from_fp32 ? values_kernel<float>(to_fp32, wide)
			      : values_kernel<bf16>(to_fp32, wide),
		    c.rows * c.vectors, c);
}

static void put_codes(struct device *dev, const struct place &at, const struct few_bits *f,
		      struct casting &c)
{
	bool along = f->shape.k_along_memory, fp32 = f->in_fp32 || dev->compute != COMPUTE_BF16;
	uintptr_t places = (uintptr_t)f->in | (uintptr_t)f->codes | (uintptr_t)f->turned;
	bool wide = places % 16 == 0 && c.rows % RUN == 0 && c.columns % RUN == 0 &&
		    c.ld % 4 == 0 && (c.tiles.columns == 1 || c.tiles.columns % 4 == 0);

	c.codes = along ? f->codes : f->turned;
	c.turned = along ? f->turned : f->codes;
	launch(dev, at,
	       fp32 ? (wide ? cast_codes<float, true> : cast_codes<float, false>)
		    : (wide ? cast_codes<bf16, true> : cast_codes<bf16, false>),
	       blocks_for(c.rows, SIDE) * blocks_for(c.columns, SIDE), BLOCK, 0, c);
}

extern "C" void cuda_few_bits(struct device *dev, const struct place *at,
			      const struct few_bits *given)
{
	const struct operand_cast *cast = given->use->cast;
	const struct format_cast how = { cast->rounding, true };
	const struct grid grid = grid_of(&cast->format, &how);
	const struct scale *scale;
	struct few_bits f = *given;

	if (dev->is_fused &&
	    (cuda_few_bits_at_once(dev, at, given, 1) || cuda_few_bits_of_rows(dev, at, given)))
		return;
	if (!cuda_operand_scales(dev, at, &f, &grid, &scale))
		return;
	struct casting c = casting_of(&f, scale, grid);
	if (f.values)
		put_values(dev, *at, &f, c);
	if ((f.codes || f.turned) && !cuda_fp8_codes(dev, at, &f, scale))
		put_codes(dev, *at, &f, c);
	if (f.scales)
		cuda_lay_scales(dev, at, &f, scale);
}

extern "C" void cuda_quantize(struct device *dev, float *out, const float *x,
			      const struct stored *shape, const struct operand_use *use)
{
	const struct place at = AT("quantize", shape->rows, shape->columns, 0, 0);
	struct few_bits f = {};

	f.in = x;
	f.in_fp32 = f.values_fp32 = true;
	f.shape = *shape;
	f.use = use;
	f.values = out;
	cuda_few_bits(dev, &at, &f);
}

extern "C" void cuda_codes(struct device *dev, uint8_t *codes, float *scales, const void *x,
			   const struct stored *shape, const struct operand_use *use)
{
	const struct place at = AT("codes", shape->rows, shape->columns, 0, 0);
	struct few_bits f = {};

	f.in = x;
	f.shape = *shape;
	f.use = use;
	f.codes = codes;
	f.scales = scales;
	f.layout = LAYOUT_TILES;
	cuda_few_bits(dev, &at, &f);
}
