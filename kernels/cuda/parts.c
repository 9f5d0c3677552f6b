/* SPDX-License-Identifier: MIT */
/* parts.c - memory of models that lie on several ranks: what is reserved is taken whole, and what
 * is discarded stays; of weights other ranks want what products read. */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>

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

/* --- arrays of which this rank keeps parts ---------------------------------------------------- */

/* Of elements of so many bytes. */
static struct byte_run run_of(const struct share *s, size_t origin, size_t each, int rest)
{
	size_t own = origin + s->own_first * each;

	return (struct byte_run){ origin + s->first * each, origin + (s->first + s->count) * each,
				  own, own + s->own_count * each, rest };
}

void *cuda_reserve_shares(struct device *dev, size_t count, size_t each, const struct share *share,
			  size_t shares)
{
	struct byte_run *run = malloc((shares + 1) * sizeof(*run));

	if (!run)
		return NULL;
	for (size_t i = 0; i < shares; i++)
		run[i] = run_of(&share[i], 0, each, share[i].rest);
	void *memory = cuda_take_shares(dev, count * each, "parts of the model", run, shares);
	free(run);
	return memory;
}

/* Matrices in two halves: what is read of others' is the upper ones. */
float *cuda_alloc_weights_shares(struct device *dev, size_t count, size_t matrices,
				 const struct share *share, size_t shares)
{
	bool is_split = dev->compute == COMPUTE_BF16;
	struct byte_run *run = malloc((2 * shares + 1) * sizeof(*run));
	size_t runs = 0;

	if (!run)
		return NULL;
	for (size_t i = 0; i < shares; i++) {
		const struct share *s = &share[i];
		if (!is_split || s->first >= matrices) {
			run[runs++] = run_of(s, 0, sizeof(float), s->rest);
			continue;
		}
		run[runs++] = run_of(s, 0, sizeof(uint16_t), s->rest);
		run[runs++] = run_of(s, matrices * sizeof(uint16_t), sizeof(uint16_t),
				     REST_IS_LOST);
	}
	float *weights = cuda_take_weights(dev, count, matrices, run, runs);
	free(run);
	return weights;
}
