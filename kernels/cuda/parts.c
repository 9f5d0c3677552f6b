/* SPDX-License-Identifier: MIT */
/* parts.c - memory of models that lie on several ranks: what is reserved is taken whole, and what is
 * discarded stays; of weights other ranks want what products read. */
#include "kernels/cuda/cuda.h"

void *cuda_reserve(struct device *dev, size_t bytes)
{
	/* zeros: gradients of learned positions that no sequence reaches are never written */
	return cuda_alloc(dev, bytes, "parts of the model");
}

void cuda_discard(struct device *dev, void *memory, size_t bytes)
{
	(void)dev;
	(void)memory;
	(void)bytes;
}

void cuda_copy(struct device *dev, void *to, const void *from, size_t bytes)
{
	cuda_ok(dev, AT("copy", bytes, 0, 0, 0),
		cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, dev->stream));
}

/* Of matrices in two halves the upper ones; of vectors fp32 (whose copies weights_came makes). */
void *cuda_weights_wanted(struct device *dev, float *weights, size_t *each)
{
	uint16_t *lower = cuda_lower(dev, weights);

	*each = lower ? sizeof(uint16_t) : sizeof(float);
	return lower ? (void *)(lower - cuda_weights_at(dev, weights)->split) : weights;
}
