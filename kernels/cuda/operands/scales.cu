/* SPDX-License-Identifier: MIT */
/* scales.cu - of an operand of few bits the Hadamard transform, the largest of each tile that
 * shares a scale, and the scales, to the bit as kernels/cpu/narrow/quantize.c has them.
 *
 * amax: a thread owns V columns of a band of rows within one tile; lanes that share a tile find the
 * largest by shuffles, then one atomicMax on its bits: a maximum knows no order. Scales: a thread
 * owns a tile.
 *
 * Compiled without fused multiply-adds (etc/cuda.mk): two scales are compared by sums of
 * squares. */
#include "kernels/cuda/operands/boxes.cuh"

enum { BAND = 32 };

/* --- the Hadamard transform ----------------------------------------------------------------- */

struct turning {
	float *out;
	const void *in;
	struct stored shape;
	size_t groups, threads; /* of what is summed over, with a last one that is not whole */
};

/* Of D, as kernels/cpu/narrow/turn.c has it, over sqrt(16). */
DEVICE float sign_of(int i)
{
	const uint32_t negative = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8 | 1u << 9 | 1u << 11 |
				  1u << 13 | 1u << 14;
	return negative >> i & 1u ? -0.25f : 0.25f;
}

template <typename T> KERNEL(BLOCK) turn(struct turning t)
{
	after_earlier();
	size_t i = flat_index(), k = t.shape.k_along_memory ? t.shape.columns : t.shape.rows;
	size_t others = t.shape.k_along_memory ? t.shape.rows : t.shape.columns;
	float a[HADAMARD_SIZE];

	if (i >= t.threads)
		return;
	/* neighbours in memory are neighbours here */
	size_t group = t.shape.k_along_memory ? i % t.groups : i / others;
	size_t other = t.shape.k_along_memory ? i / t.groups : i % others;
	size_t step = t.shape.k_along_memory ? 1 : t.shape.ld;
	size_t step_out = t.shape.k_along_memory ? 1 : t.shape.columns;
	size_t from = group * HADAMARD_SIZE;
	size_t at = t.shape.k_along_memory ? other * t.shape.ld + from : from * t.shape.ld + other;
	size_t to = t.shape.k_along_memory ? other * t.shape.columns + from
					   : from * t.shape.columns + other;
	const T *in = (const T *)t.in;

	if (from + HADAMARD_SIZE > k) {
		for (size_t j = 0; from + j < k; j++)
			t.out[to + j * step_out] = widen(in[at + j * step]);
		return;
	}
#pragma unroll
	for (int j = 0; j < HADAMARD_SIZE; j++)
		a[j] = widen(in[at + (size_t)j * step]) * sign_of(j);
#pragma unroll
	for (int half = 1; half < HADAMARD_SIZE; half *= 2)
#pragma unroll
		for (int j = 0; j < HADAMARD_SIZE; j++)
			if ((j & half) == 0) {
				float x = a[j], y = a[j + half];
				a[j] = x + y;
				a[j + half] = x - y;
			}
#pragma unroll
	for (int j = 0; j < HADAMARD_SIZE; j++)
		t.out[to + (size_t)j * step_out] = a[j];
}

/* --- the largest of each tile --------------------------------------------------------------- */

struct largest {
	const void *in;
	unsigned *amax; /* bits, of each tile */
	size_t rows, columns, ld, band, vectors;
	struct tiles tiles;
	unsigned lanes; /* that share a tile, side by side */
};

template <typename T, int V> KERNEL(BLOCK) tile_amax(struct largest w)
{
	after_earlier();
	size_t i = flat_index(), first = i / w.vectors * w.band, c = i % w.vectors * V;
	size_t end = first + w.band < w.rows ? first + w.band : w.rows;
	size_t tile = first / w.tiles.rows * w.tiles.right;
	unsigned top[V] = { 0 }, most = 0;

	for (size_t r = first; r < end; r++) {
		float x[V];
		load<T, V>(x, w.in, (r * w.ld + c) / V);
#pragma unroll
		for (int j = 0; j < V; j++) {
			unsigned bits = bits_of(x[j]) & 0x7fffffffu;
			top[j] = bits > top[j] ? bits : top[j];
		}
	}
	if (w.tiles.columns % V != 0) {
#pragma unroll
		for (int j = 0; j < V; j++)
			if (first < w.rows)
				atomicMax(&w.amax[tile + (c + (size_t)j) / w.tiles.columns],
					  top[j]);
		return;
	}
#pragma unroll
	for (int j = 0; j < V; j++)
		most = top[j] > most ? top[j] : most;
	for (unsigned width = w.lanes / 2; width > 0; width /= 2) {
		unsigned other = __shfl_xor_sync(0xffffffffu, most, (int)width);
		most = other > most ? other : most;
	}
	if (first < w.rows && threadIdx.x % w.lanes == 0)
		atomicMax(&w.amax[tile + c / w.tiles.columns], most);
}

struct most {
	const unsigned *of;
	unsigned *out;
	size_t count;
};

KERNEL(BLOCK) most_of(struct most m)
{
	after_earlier();
	unsigned most = 0;

	for (size_t i = 0; i < BAND; i++) {
		size_t at = ((size_t)blockIdx.x * BAND + i) * blockDim.x + threadIdx.x;
		unsigned bits = at < m.count ? m.of[at] : 0;
		most = bits > most ? bits : most;
	}
	most = warp_most(most);
	if (threadIdx.x % WARP == 0)
		atomicMax(m.out, most);
}

/* --- scales ----------------------------------------------------------------------------------- */

struct scaling {
	const void *in;
	const unsigned *amax, *most; /* most: of all tiles, for scales of two levels */
	struct scale *scale;
	size_t rows, columns, ld;
	struct tiles tiles;
	struct scale_rule rule;
	struct grid grid;
	float *history;
	uint32_t length;
	bool notes;
};

/* Sum of squares of what a scale makes wrong, in the CPU's order. */
template <typename T>
DEVICE double tile_error(const struct scaling &s, size_t row, size_t column, struct scale by)
{
	size_t end_row = row + s.tiles.rows < s.rows ? row + s.tiles.rows : s.rows;
	size_t end = column + s.tiles.columns < s.columns ? column + s.tiles.columns : s.columns;
	double sum = 0;

	for (size_t r = row; r < end_row; r++)
		for (size_t c = column; c < end; c++) {
			float x = widen(((const T *)s.in)[r * s.ld + c]);
			float y = round_to_grid(&s.grid, x * by.multiply, ROUND_NEAREST_EVEN, 0);
			double e = (double)(x - y * by.scale);
			sum += e * e;
		}
	return sum;
}

template <typename T> KERNEL(BLOCK) tile_scales(struct scaling s)
{
	after_earlier();
	size_t i = flat_index();
	float amax = 0, tensor = 0;

	if (i >= s.tiles.down * s.tiles.right)
		return;
	if (s.rule.kind != SCALE_NONE)
		amax = float_of(s.amax[i]);
	if (s.rule.kind == SCALE_E4M3)
		tensor = tensor_scale_by_rule(&s.rule, float_of(*s.most));
	else if (s.tiles.down * s.tiles.right == 1)
		amax = delayed_amax(s.history, s.length, s.notes, amax);
	struct scale by = scale_by_rule(&s.rule, amax, tensor, s.grid.max);
	if (s.rule.four_over_six) {
		size_t row = i / s.tiles.right * s.tiles.rows;
		size_t column = i % s.tiles.right * s.tiles.columns;
		struct scale four = scale_by_rule(&s.rule, amax, tensor, 4);
		if (tile_error<T>(s, row, column, four) < tile_error<T>(s, row, column, by))
			by = four;
	}
	s.scale[i] = by;
}

struct laying {
	const struct scale *scale;
	void *out;
	struct tiles tiles;
	enum scale_layout layout;
	bool k_along_memory;
	size_t along, stride; /* tiles; rows of what is not summed over, or of a row of blocks */
	size_t tile, count;   /* rows that a tile has across; floats of out */
};

/* A thread owns a place of the layout. */
KERNEL(BLOCK) lay_scales(struct laying l)
{
	after_earlier();
	size_t i = flat_index(), across = 0, along = 0;

	if (i >= l.count)
		return;
	if (l.layout == LAYOUT_TILES || l.layout == LAYOUT_BLOCKS) {
		across = i / l.stride;
		along = i % l.stride;
	} else if (l.layout != LAYOUT_SCALAR) {
		across = i % l.stride / l.tile;
		along = i / l.stride;
	}
	size_t at = l.k_along_memory ? across * l.tiles.right + along
				     : along * l.tiles.right + across;
	((float *)l.out)[i] = along < l.along ? l.scale[at].scale : 0.0f;
}

/* --- launches --------------------------------------------------------------------------------- */

static size_t at_most(size_t wanted, size_t there)
{
	return wanted == OPERAND_ALL || wanted > there ? there : wanted;
}

extern "C" struct tiles tiles_of(const struct operand_cast *cast, const struct stored *shape)
{
	size_t k = shape->k_along_memory ? shape->columns : shape->rows;
	size_t others = shape->k_along_memory ? shape->rows : shape->columns;
	size_t along = at_most(cast->along, k), across = at_most(cast->across, others);
	struct tiles t;

	if (cast->scale == SCALE_NONE)
		along = k, across = others;
	t.rows = shape->k_along_memory ? across : along;
	t.columns = shape->k_along_memory ? along : across;
	t.down = blocks_for(shape->rows, t.rows);
	t.right = blocks_for(shape->columns, t.columns);
	return t;
}

/* The area: scales, the bits of amax and the largest of them, and the operand, turned. Where the
 * user keeps the largest of all, that is in the user's memory. */
struct area {
	struct scale *scale;
	unsigned *amax, *most;
	float *turned;
	size_t bytes;
};

static struct area area_of(const struct operand_cast *cast, const struct stored *shape,
			   void *memory)
{
	struct tiles t = tiles_of(cast, shape);
	size_t count = t.down * t.right;
	size_t first = (count * sizeof(struct scale) + 15) / 16 * 16;
	size_t second = ((count + 1) * sizeof(unsigned) + 15) / 16 * 16;
	struct area a;

	a.scale = (struct scale *)memory;
	a.amax = (unsigned *)((char *)memory + first);
	a.most = a.amax + count;
	a.turned = cast->hadamard ? (float *)((char *)memory + first + second) : NULL;
	a.bytes = first + second +
		  (cast->hadamard ? shape->rows * shape->columns * sizeof(float) : 0);
	return a;
}

extern "C" size_t cuda_few_bits_area(const struct operand_cast *cast, const struct stored *shape)
{
	return area_of(cast, shape, NULL).bytes;
}

static void turn_operand(struct device *dev, const struct place &at, struct few_bits *f,
			 const struct area &a)
{
	size_t k = f->shape.k_along_memory ? f->shape.columns : f->shape.rows;
	size_t others = f->shape.k_along_memory ? f->shape.rows : f->shape.columns;
	size_t groups = blocks_for(k, HADAMARD_SIZE);
	struct turning t = { a.turned, f->in, f->shape, groups, groups * others };

	launch_flat(dev, at, FOR_INPUT(dev, f->in_fp32, turn), t.threads, t);
	f->in = a.turned;
	f->in_fp32 = true;
	f->shape.ld = f->shape.columns;
}

/* So many lanes, side by side, that share a tile and a band. */
static unsigned lanes_of(const struct largest &w, size_t each)
{
	unsigned lanes = WARP;

	if (w.tiles.columns % each != 0)
		return 1;
	while (lanes > 1 && (w.tiles.columns % (each * lanes) != 0 || w.vectors % lanes != 0))
		lanes /= 2;
	return lanes;
}

static void find_largest(struct device *dev, const struct place &at, const struct few_bits *f,
			 const struct tiles &tiles, const struct area &a)
{
	bool fp32 = f->in_fp32 || dev->compute != COMPUTE_BF16, wide = reads_wide(f, EACH);
	size_t each = wide ? EACH : 1, count = tiles.down * tiles.right;
	bool fits = tiles.down == 1 || tiles.rows % BAND == 0;
	size_t band = fits ? (size_t)BAND : tiles.rows < BAND ? tiles.rows : 1;
	struct largest w = { f->in,
			     a.amax,
			     f->shape.rows,
			     f->shape.columns,
			     f->shape.ld,
			     band,
			     f->shape.columns / each,
			     tiles,
			     1 };

	w.lanes = lanes_of(w, each);
	cuda_zero(dev, a.amax, count * sizeof(*a.amax));
	size_t threads = blocks_for(f->shape.rows, band) * w.vectors;
	void (*kernel)(struct largest) = fp32 ? (wide ? tile_amax<float, EACH>
						      : tile_amax<float, 1>)
					      : (wide ? tile_amax<bf16, EACH> : tile_amax<bf16, 1>);
	if (w.lanes > 1)
		launch(dev, at, kernel, blocks_for(threads, BLOCK), BLOCK, 0, w);
	else
		launch_flat(dev, at, kernel, threads, w);
}

static void find_most(struct device *dev, const struct place &at, const struct area &a,
		      size_t count)
{
	struct most m = { a.amax, a.most, count };

	cuda_zero(dev, a.most, sizeof(*a.most));
	launch(dev, at, most_of, blocks_for(count, BLOCK * BAND), BLOCK, 0, m);
}

static void find_scales(struct device *dev, const struct place &at, const struct few_bits *f,
			const struct tiles &tiles, struct area a, const struct grid &grid)
{
	const struct operand_use *use = f->use;
	size_t count = tiles.down * tiles.right;
	bool of_tiles = use->cast->scale == SCALE_E4M3; /* and of them the largest */
	bool asks = operand_asks_amax(use->cast), known = asks && use->amax && use->amax_known;

	if (asks && use->amax)
		a.most = (unsigned *)use->amax;
	if (asks && !of_tiles)
		a.amax = a.most;
	if (use->cast->scale != SCALE_NONE && (of_tiles || !known))
		find_largest(dev, at, f, tiles, a);
	if (of_tiles && !known)
		find_most(dev, at, a, count);
	struct scaling s = { f->in,       a.amax,        a.most,
			     a.scale,     f->shape.rows, f->shape.columns,
			     f->shape.ld, tiles,         scale_rule_of(use->cast),
			     grid,        use->history,  use->cast->history,
			     use->notes };

	launch_flat(dev, at, FOR_INPUT(dev, f->in_fp32, tile_scales), count, s);
}

/* Of the layout: what it holds in all, and its rows. */
static size_t layout_floats(enum scale_layout layout, const struct tiles &t,
			    const struct stored *shape, size_t *stride)
{
	size_t across = shape->k_along_memory ? t.down : t.right;
	size_t along = shape->k_along_memory ? t.right : t.down;
	size_t others = shape->k_along_memory ? shape->rows : shape->columns;

	*stride = layout == LAYOUT_TILES    ? along
		  : layout == LAYOUT_BLOCKS ? (along + 3) / 4 * 4
					    : others;
	if (layout == LAYOUT_SCALAR)
		return 1;
	if (layout == LAYOUT_VECTOR)
		return others;
	return *stride * (layout == LAYOUT_VEC128 ? along : across);
}

extern "C" size_t cuda_code_bytes(enum scale_layout layout, const struct stored *shape)
{
	return shape->rows * shape->columns / (layout == LAYOUT_E4M3 ? 2 : 1);
}

extern "C" float *cuda_tensor_scale(void *scales, const struct stored *shape)
{
	return (float *)((char *)scales + box_bytes(LAYOUT_E4M3, shape));
}

extern "C" void cuda_factors(struct device *dev, const struct place *at, float *out, const float *a,
			     const float *b, float alpha, float beta)
{
	const struct factors f = { out, a, b, alpha, beta };

	launch(dev, *at, set_factors, 1, WARP, 0, f);
}

extern "C" size_t cuda_scale_bytes(enum scale_layout layout, const struct operand_cast *cast,
				   const struct stored *shape)
{
	size_t stride;

	if (layout_block(layout) > 0)
		return box_bytes(layout, shape) + (layout == LAYOUT_E4M3 ? sizeof(float) : 0);
	return layout_floats(layout, tiles_of(cast, shape), shape, &stride) * sizeof(float);
}

extern "C" bool cuda_operand_scales(struct device *dev, const struct place *at, struct few_bits *f,
				    const struct grid *grid, const struct scale **scale)
{
	const struct operand_cast *cast = f->use->cast;
	void *memory = cuda_scratch(dev, at, cuda_few_bits_area(cast, &f->shape));

	if (!memory || f->shape.rows == 0 || f->shape.columns == 0)
		return false;
	const struct area a = area_of(cast, &f->shape, memory);
	if (cast->hadamard)
		turn_operand(dev, *at, f, a);
	find_scales(dev, *at, f, tiles_of(cast, &f->shape), a, *grid);
	*scale = a.scale;
	return true;
}

extern "C" void cuda_lay_scales(struct device *dev, const struct place *at,
				const struct few_bits *f, const struct scale *scale)
{
	const struct tiles t = tiles_of(f->use->cast, &f->shape);
	struct laying l;

	if (layout_block(f->layout) > 0) {
		const unsigned *most = area_of(f->use->cast, &f->shape, (void *)scale).most;
		if (operand_asks_amax(f->use->cast) && f->use->amax)
			most = (const unsigned *)f->use->amax;
		lay_boxes(dev, *at, f, scale, most);
		return;
	}
	l.scale = scale;
	l.out = f->scales;
	l.tiles = t;
	l.layout = f->layout;
	l.k_along_memory = f->shape.k_along_memory;
	l.along = f->shape.k_along_memory ? t.right : t.down;
	l.tile = f->shape.k_along_memory ? t.rows : t.columns;
	l.count = layout_floats(f->layout, t, &f->shape, &l.stride);
	launch_flat(dev, *at, lay_scales, l.count, l);
}

/* --- histories -------------------------------------------------------------------------------- */

struct histories {
	float *first;
	size_t count, length;
};

KERNEL(BLOCK) amax_step(struct histories h)
{
	after_earlier();
	size_t i = flat_index();

	if (i < h.count)
		amax_into_past(h.first + i * (AMAX_PAST + h.length), (uint32_t)h.length);
}

extern "C" void cuda_amax_step(struct device *dev, float *histories, size_t count, size_t length)
{
	struct histories h = { histories, count, length };
	launch_flat(dev, AT("amax_step", count, length, 0, 0), amax_step, count, h);
}
