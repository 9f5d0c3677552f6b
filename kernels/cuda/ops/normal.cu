/* SPDX-License-Identifier: MIT */
/* normal.cu - normal numbers, each a function of its place (kernels/normal.h): the CPU's bits.
 *
 * A thread owns four of them. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/normal.h"

struct draw {
	float *to;
	size_t count;
	struct normal n;
};

KERNEL(BLOCK) normal(struct draw d)
{
	after_earlier();
	size_t i = 4 * flat_index();
	uint64_t four = (d.n.first + i) / 4;
	const uint32_t counter[4] = { (uint32_t)four, (uint32_t)(four >> 32), d.n.tensor,
				      d.n.step };
	const uint32_t key[2] = { (uint32_t)d.n.key, (uint32_t)(d.n.key >> 32) };
	uint32_t words[4];
	float x[4];

	philox4x32_10(words, counter, key);
	normal_of_words(x, words, d.n.std);
#pragma unroll
	for (size_t j = 0; j < 4; j++)
		if (i + j < d.count)
			d.to[i + j] = x[j];
}

static void draw(struct device *dev, float *to, size_t count, const struct normal *n)
{
	struct draw d = { to, count, *n };
	launch_flat(dev, AT("normal", count, 0, 0, 0), normal, blocks_for(count, 4), d);
}

/* Matrices by pieces of fp32 that are split; weights of both kinds are no one call. */
extern "C" void cuda_normal(struct device *dev, float *to, size_t count, const struct normal *n)
{
	struct normal part = *n;
	bool is_split;

	cuda_run(dev, to, count, &is_split);
	if (!is_split) {
		draw(dev, to, count, n);
		cuda_narrow_vectors(dev, to, count);
		return;
	}
	for (size_t done = 0; done < count; done += JOINED) {
		float *whole = cuda_weights_at(dev, to)->whole;
		size_t piece = count - done < (size_t)JOINED ? count - done : (size_t)JOINED;
		part.first = n->first + done;
		draw(dev, whole, piece, &part);
		cuda_split_weights(dev, to + done, whole, piece);
	}
}
