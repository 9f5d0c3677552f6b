/* SPDX-License-Identifier: MIT */
/* finish.cuh - what a kernel makes of the vectors that it writes, beside them, where products of
 * few bits read them next (kernels/cuda/expected.c): the largest of all; and codes, or codes times
 * their scales, where numbers that share a scale lie side by side in a row, and are the vectors of
 * lanes of one warp, or where past steps give the scale of all.
 *
 * To the bit what scales.cu and quantize.cu make of the same numbers in passes of their own. The
 * largest: of a block, then one atomicMax on the bits, left out where a larger one is there: a
 * maximum knows no order. */
#ifndef KERNELS_CUDA_FINISH_CUH
#define KERNELS_CUDA_FINISH_CUH

#include "kernels/cuda/ops/casting.cuh"

struct finish {
	unsigned *amax; /* bits; NULL: not wanted */
	float *scales;  /* [along][row], with codes */
	/* of which `length` past ones decide (operand.h); NULL: this one's numbers do */
	const float *history;
	uint32_t length;
	size_t rows, columns, along;
	unsigned lanes; /* that share a scale */
	struct scale_rule rule;
	struct casting c; /* neither codes nor values: none are wanted */
};

/* By past steps, 0 where they do not decide; where there are none any, for what delayed.cu makes
 * anew. All lanes of a warp come here, once a thread. */
DEVICE unsigned most_of_past(const struct finish &f)
{
	unsigned most = 0;

	if (!f.history)
		return 0;
	const float filled = f.history[AMAX_FILLED];
	for (uint32_t i = threadIdx.x % WARP; i < f.length && (float)i < filled; i += WARP) {
		unsigned bits = bits_of(f.history[AMAX_PAST + i]);
		most = bits > most ? bits : most;
	}
	return warp_most(most);
}

template <int V>
DEVICE void put_codes_of(const struct finish &f, const vector<uint8_t, V> &codes, size_t element,
			 const struct scale &s)
{
	((vector<uint8_t, V> *)f.c.codes)[element / V] = codes;
	if (!f.history && element % f.along == 0)
		f.scales[element % f.columns / f.along * f.rows + element / f.columns] = s.scale;
}

template <typename T, int V>
DEVICE void finish_numbers(const struct finish &f, float (&x)[V], size_t element,
			   const struct scale &s)
{
	vector<uint8_t, V> codes;

	if (f.c.fp8 != NO_FP8 && !f.c.values) {
		const float multiply[4] = { s.multiply, s.multiply, s.multiply, s.multiply };
#pragma unroll
		for (int j = 0; j < V; j += 4) {
			const float some[4] = { x[j], x[j + 1], x[j + 2], x[j + 3] };
			uint32_t four = four_fp8(f.c, some, multiply);
			memcpy(&codes.v[j], &four, sizeof(four));
		}
		put_codes_of<V>(f, codes, element, s);
		return;
	}
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] = rounded_to(f.c, x[j], s.multiply, 0);
	if (f.c.values) {
#pragma unroll
		for (int j = 0; j < V; j++)
			x[j] *= s.scale;
		store<T, V>(f.c.values, element / V, x);
		return;
	}
#pragma unroll
	for (int j = 0; j < V; j++)
		codes.v[j] = (uint8_t)code_of(f.c, x[j]);
	put_codes_of<V>(f, codes, element, s);
}

/* The largest of what the threads of a block have written: all of them come here, once. A block
 * asks for what there is, and no warp: all ask at the same address. */
DEVICE void finish_amax(const struct finish &f, unsigned most)
{
	__shared__ unsigned of_block;

	if (!f.amax)
		return;
	if (threadIdx.x == 0)
		of_block = 0;
	most = warp_most(most);
	__syncthreads();
	if (threadIdx.x % WARP == 0)
		atomicMax(&of_block, most);
	__syncthreads();
	if (threadIdx.x == 0 && of_block > *(volatile unsigned *)f.amax)
		atomicMax(f.amax, of_block);
}

/* Of V numbers written, from `element` on; past: most_of_past(). All lanes of a warp come here;
 * is_there: this one has written any. The largest of them, for finish_amax(). */
template <typename T, int V>
DEVICE unsigned finish_vector(const struct finish &f, unsigned past, const float (&written)[V],
			      size_t element, bool is_there)
{
	unsigned most = 0;
	float x[V];

#pragma unroll
	for (int j = 0; j < V; j++) {
		x[j] = rounded<T>(written[j]);
		unsigned bits = is_there ? bits_of(x[j]) & 0x7fffffffu : 0;
		most = bits > most ? bits : most;
	}
	for (unsigned width = 1; width < f.lanes; width *= 2) {
		unsigned other = __shfl_xor_sync(0xffffffffu, most, (int)width);
		most = other > most ? other : most;
	}
	unsigned decides = f.history ? past : most;
	if (is_there && (f.c.codes || f.c.values))
		finish_numbers<T, V>(f, x, element,
				     scale_by_rule(&f.rule, float_of(decides), 0, f.c.grid.max));
	return most;
}

static inline void finish_makes(struct device *dev, const struct few_bits *made, struct finish *f)
{
	const struct operand_cast *cast = made->use->cast;
	const struct format_cast how = { cast->rounding, true };

	f->c = casting_of(made, NULL, grid_of(&cast->format, &how));
	f->c.codes = made->codes;
	f->c.values = made->values;
	f->rule = scale_rule_of(cast);
	f->scales = (float *)made->scales;
	f->rows = made->shape.rows;
	f->columns = made->shape.columns;
	f->along = cast->along;
	f->length = cast->history;
	if (cast->history > 0)
		f->history = made->use->history;
	else
		f->lanes = (unsigned)(f->along / vector_of(dev, true));
}

/* Of the operation that writes `count` elements of `out` in vectors of 16 bytes, the i-th thread
 * the i-th vector of a run of `unit` elements. False: nothing is wanted. */
static inline bool finish_begins(struct device *dev, const void *out, size_t count, size_t unit,
				 bool wide, struct finish *f)
{
	struct finishing wanted;

	if (!wide || !cuda_finishing(dev, out, count, unit, &wanted))
		return false;
	*f = {};
	f->amax = (unsigned *)wanted.amax;
	f->lanes = 1;
	if (wanted.made.use)
		finish_makes(dev, &wanted.made, f);
	return true;
}

/* The instance for the device's type: only that of vectors of 16 bytes finishes. */
#define PICK_FINISH(dev, wide, finish, kernel) \
	((dev)->compute == COMPUTE_BF16 ? ((finish) ? kernel<bf16, 8, true> \
					   : (wide) ? kernel<bf16, 8, false> \
						    : kernel<bf16, 1, false>) \
					: ((finish) ? kernel<float, 4, true> \
					   : (wide) ? kernel<float, 4, false> \
						    : kernel<float, 1, false>))

/* launch_flat(); where it finishes, of threads that wait for those of their warp. */
template <typename A>
static void launch_finishing(struct device *dev, const struct place &at, void (*kernel)(A),
			     size_t threads, bool finish, const A &arguments)
{
	if (finish)
		launch(dev, at, kernel, blocks_for(threads, BLOCK), BLOCK, 0, arguments);
	else
		launch_flat(dev, at, kernel, threads, arguments);
}

#endif
