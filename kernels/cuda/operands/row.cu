/* SPDX-License-Identifier: MIT */
/* row.cu - an operand as numbers of few bits in one pass, where a row as it lies has one scale: to
 * the bit what scales.cu and quantize.cu make in passes of their own.
 *
 * A block owns a row. A thread reads runs of 16 elements, neighbours beside each other: the largest
 * by shuffles and atomicMax in shared memory, a maximum knows no order. Then the row comes from the
 * cache. */
#include "kernels/cuda/ops/casting.cuh"

struct rowing {
	struct casting c; /* codes, or values */
	struct scale_rule rule;
	struct scale *scale; /* of each row; or, as the product reads them, */
	float *laid;         /* NULL: not */
};

template <typename T> DEVICE unsigned largest_of_row(const struct casting &c, size_t row)
{
	unsigned most = 0;

	for (size_t i = threadIdx.x; i < c.vectors; i += blockDim.x)
#pragma unroll
		for (size_t j = 0; j < RUN / EACH; j++) {
			float x[EACH];
			load<T, EACH>(x, c.in, (row * c.ld + i * RUN) / EACH + j);
#pragma unroll
			for (int k = 0; k < EACH; k++) {
				unsigned bits = bits_of(x[k]) & 0x7fffffffu;
				most = bits > most ? bits : most;
			}
		}
	return warp_most(most);
}

/* Four elements of the row, before their scale is put back. */
template <typename T>
DEVICE void four_of_row(const struct casting &c, float multiply, size_t row, size_t column,
			float (&x)[4])
{
	uint32_t random[4] = { 0 };

	load<T, 4>(x, c.in, (row * c.ld + column) / 4);
	if (c.rounding == ROUND_STOCHASTIC)
		draw(random, c, row * c.columns + column);
#pragma unroll
	for (int j = 0; j < 4; j++)
		x[j] = rounded_to(c, x[j], multiply, random[j]);
}

template <typename T>
DEVICE void put_run_of_row(const struct casting &c, struct scale s, size_t row, size_t column)
{
	struct sixteen codes;

#pragma unroll
	for (int j = 0; j < RUN / 4; j++) {
		size_t at = column + 4 * (size_t)j;
		float x[4];
		if (c.fp8 != NO_FP8 && !c.values) {
			const float multiply[4] = { s.multiply, s.multiply, s.multiply,
						    s.multiply };
			load<T, 4>(x, c.in, (row * c.ld + at) / 4);
			codes.four[j] = four_fp8(c, x, multiply);
			continue;
		}
		four_of_row<T>(c, s.multiply, row, at, x);
		codes.four[j] = 0;
#pragma unroll
		for (int b = 0; b < 4; b++) {
			codes.four[j] |= c.values ? 0 : code_of(c, x[b]) << 8 * b;
			x[b] *= s.scale;
		}
		if (c.values)
			store<T, 4>(c.values, (row * c.columns + at) / 4, x);
	}
	if (!c.values)
		*(struct sixteen *)(c.codes + row * c.columns + column) = codes;
}

template <typename T> KERNEL(BLOCK) cast_row(struct rowing r)
{
	after_earlier();
	__shared__ unsigned amax;
	size_t row = blockIdx.x;

	if (threadIdx.x == 0)
		amax = 0;
	__syncthreads();
	unsigned most = largest_of_row<T>(r.c, row);
	if (threadIdx.x % WARP == 0)
		atomicMax(&amax, most);
	__syncthreads();
	const struct scale s = scale_by_rule(&r.rule, float_of(amax), 0, r.c.grid.max);
	if (threadIdx.x == 0 && r.laid)
		r.laid[row] = s.scale;
	else if (threadIdx.x == 0)
		r.scale[row] = s;
	for (size_t i = threadIdx.x; i < r.c.vectors; i += blockDim.x)
		put_run_of_row<T>(r.c, s, row, i * RUN);
}

/* --- the launch ------------------------------------------------------------------------------- */

static bool is_row(const struct operand_cast *c, const struct stored *shape)
{
	const struct tiles t = tiles_of(c, shape);

	return t.rows == 1 && t.right == 1 && t.down > 1 && shape->k_along_memory &&
	       c->scale != SCALE_NONE && c->scale != SCALE_E4M3 && c->format.exponent != 8 &&
	       !c->hadamard && !c->four_over_six && c->history == 0;
}

extern "C" bool cuda_few_bits_of_rows(struct device *dev, const struct place *at,
				      const struct few_bits *f)
{
	const struct operand_cast *cast = f->use->cast;
	const struct format_cast how = { cast->rounding, true };
	uintptr_t places = (uintptr_t)f->in | (uintptr_t)f->codes | (uintptr_t)f->values;
	bool is_type = dev->compute != COMPUTE_BF16 || !(f->in_fp32 || f->values_fp32);
	bool is_laid = f->layout == LAYOUT_VECTOR || f->layout == LAYOUT_TILES;

	if (!is_row(cast, &f->shape) || !is_type || f->turned || places % 16 != 0 ||
	    f->shape.columns % RUN != 0 || f->shape.ld % EACH != 0)
		return false;
	struct scale *scale = (struct scale *)cuda_scratch(dev, at,
							   f->shape.rows * sizeof(struct scale));
	if (!scale)
		return true; /* a failure, which is kept */
	struct rowing r = {};
	r.c = casting_of(f, NULL, grid_of(&cast->format, &how));
	r.c.codes = f->codes;
	r.c.values = f->values;
	r.c.vectors = f->shape.columns / RUN;
	r.rule = scale_rule_of(cast);
	r.scale = scale;
	r.laid = is_laid ? (float *)f->scales : NULL;
	launch(dev, *at, EITHER(dev, cast_row), f->shape.rows, threads_for(r.c.vectors, BLOCK), 0,
	       r);
	if (f->scales && !is_laid)
		cuda_lay_scales(dev, at, f, scale);
	return true;
}
