/* SPDX-License-Identifier: MIT */
/* delayed.cu - of an operand whose numbers of few bits came with the operation that wrote it
 * (finish.cuh), under the scale that past steps give: this step's largest is noted, the scale goes
 * where the product reads it; and without a past, which only the device knows, all of it is made by
 * this step's. To the bit as scales.cu and quantize.cu.
 *
 * A thread owns vectors of 16 bytes, mostly none: with a past only the first one has anything to
 * do. */
#include "kernels/cuda/ops/finish.cuh"

enum { BLOCKS_EACH = 4 }; /* on a multiprocessor */

struct settling {
	struct finish finish;
	const void *in;
	float *history;
	const float *amax;
	float *scale; /* NULL: nobody reads it */
	size_t vectors, threads;
	bool notes;
};

template <typename T, int V> KERNEL(BLOCK) settle(struct settling s)
{
	after_earlier();
	size_t first = flat_index();
	bool has_past = s.history[AMAX_FILLED] > 0;

	if (has_past && first > 0)
		return;
	float amax = delayed_amax(s.history, s.finish.length, first == 0 && s.notes, *s.amax);
	const struct scale by = scale_by_rule(&s.finish.rule, amax, 0, s.finish.c.grid.max);

	if (first == 0 && s.scale)
		*s.scale = by.scale;
	for (size_t i = first; !has_past && i < s.vectors; i += s.threads) {
		float x[V];
		load<T, V>(x, s.in, i);
		finish_numbers<T, V>(s.finish, x, i * V, by);
	}
}

extern "C" void cuda_few_bits_settle(struct device *dev, const struct place *at,
				     const struct few_bits *made)
{
	size_t each = vector_of(dev, true), most = (size_t)dev->processors * BLOCKS_EACH * BLOCK;
	struct settling s = {};

	finish_makes(dev, made, &s.finish);
	s.in = made->in;
	s.history = made->use->history;
	s.amax = made->use->amax;
	s.scale = (float *)made->scales;
	s.notes = made->use->notes;
	s.vectors = made->shape.rows * made->shape.columns / each;
	s.threads = (s.vectors < most ? blocks_for(s.vectors, BLOCK) * BLOCK : most);
	launch_flat(dev, *at, dev->compute == COMPUTE_BF16 ? settle<bf16, 8> : settle<float, 4>,
		    s.threads, s);
}
