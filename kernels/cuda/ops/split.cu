/* SPDX-License-Identifier: MIT */
/* split.cu - fp32 as two halves of 16 bits, and back to the bit: bf16, which products read, and
 * what it lacks.
 *   narrow = bf16(x) to nearest, ties away from 0;  lower = the lower half of x's bits
 *   bits of x = (narrow << 16) + (int16_t)lower
 * since rounding went up exactly where `lower` is negative as a signed number. Ties to even would
 * not do: an odd number of upper bits would then come back as the even one beside it. A NaN stays
 * one, with other bits.
 *
 * A thread owns EACH elements, side by side. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/ops/halves.cuh"

enum { EACH = 8 };

struct halves_of {
	float *whole;
	uint16_t *narrow, *lower;
	size_t count;
};

KERNEL(BLOCK) split(struct halves_of h)
{
	after_earlier();
	size_t first = flat_index() * EACH;
	size_t end = first + EACH < h.count ? first + EACH : h.count;

	for (size_t i = first; i < end; i++) {
		struct halves x = halves_of_float(h.whole[i]);
		h.narrow[i] = x.narrow;
		h.lower[i] = x.lower;
	}
}

KERNEL(BLOCK) join(struct halves_of h)
{
	after_earlier();
	size_t first = flat_index() * EACH;
	size_t end = first + EACH < h.count ? first + EACH : h.count;

	for (size_t i = first; i < end; i++)
		h.whole[i] = float_of_halves({ h.narrow[i], h.lower[i] });
}

extern "C" void cuda_split(struct device *dev, uint16_t *narrow, uint16_t *lower, const float *from,
			   size_t count)
{
	struct halves_of h = { (float *)from, narrow, lower, count };
	launch_flat(dev, AT("split", count, 0, 0, 0), split, blocks_for(count, EACH), h);
}

extern "C" void cuda_join(struct device *dev, float *to, const uint16_t *narrow,
			  const uint16_t *lower, size_t count)
{
	struct halves_of h = { to, (uint16_t *)narrow, (uint16_t *)lower, count };
	launch_flat(dev, AT("join", count, 0, 0, 0), join, blocks_for(count, EACH), h);
}

extern "C" void cuda_narrow_vectors(struct device *dev, float *weights, size_t count)
{
	const struct weight_range *r = cuda_weights_at(dev, weights);

	if (r && r->narrow)
		cuda_cast_bf16(dev, r->narrow + ((size_t)(weights - r->master) - r->split), weights,
			       count);
}

/* The upper halves, to be written. */
static uint16_t *upper(const struct device *dev, const float *weights)
{
	return cuda_lower(dev, weights) - cuda_weights_at(dev, weights)->split;
}

extern "C" void cuda_split_weights(struct device *dev, float *weights, const float *from,
				   size_t count)
{
	cuda_split(dev, upper(dev, weights), cuda_lower(dev, weights), from, count);
}

extern "C" void cuda_join_weights(struct device *dev, float *to, const float *weights, size_t count,
				  cudaStream_t stream)
{
	cudaStream_t before = dev->stream;

	dev->stream = stream;
	cuda_join(dev, to, upper(dev, weights), cuda_lower(dev, weights), count);
	dev->stream = before;
}

extern "C" void cuda_weights_came(struct device *dev, float *weights, size_t count)
{
	if (!cuda_lower(dev, weights))
		cuda_narrow_vectors(dev, weights, count);
}
