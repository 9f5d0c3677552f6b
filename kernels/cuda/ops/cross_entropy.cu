/* SPDX-License-Identifier: MIT */
/* cross_entropy.cu - loss = log sum_j e^(z_j) - z_target per row, and dz_j = scale (p_j - [j =
 * target]), forward and backward in one launch.
 *
 * A block owns a row. Each thread keeps the maximum of its columns and the sum of e^(z - maximum),
 * rescaled whenever the maximum grows (Milakov & Gimelshein 2018), so that the row is read once for
 * the sum and once, out of the L2 cache, for the gradient that replaces it. Powers are of 2, with
 * log2 e multiplied in; the one column of the target is corrected by the thread that has it, so
 * that no column asks whether it is the one. A row with NaN or Inf gives a loss that is not finite,
 * on purpose. */
#include "kernels/cuda/ops/kernel.cuh"

struct head {
	float *loss;
	void *logits;
	const int32_t *targets;
	size_t vocab;
	float scale;
};

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

template <typename T, int V> KERNEL(BLOCK_MAX) cross_entropy(struct head h)
{
	after_earlier();
	size_t vectors = h.vocab / V, first = blockIdx.x * vectors;
	size_t target = (size_t)h.targets[blockIdx.x];
	float max = -INFINITY, sum = 0.0f, z[V];

	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		float top = max;
		load<T, V>(z, h.logits, first + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			top = z[j] > top ? z[j] : top;
		/* 0 where all was -Inf so far: no -Inf is taken from itself */
		float base = top == -INFINITY ? 0.0f : top;
		sum *= fast_exp2((max - base) * LOG2_E);
		max = top;
#pragma unroll
		for (int j = 0; j < V; j++)
			sum += fast_exp2((z[j] - base) * LOG2_E);
	}
	float whole = block_max(max);
	sum = block_sum(max == -INFINITY ? sum : sum * fast_exp2((max - whole) * LOG2_E));
	float at_target = widen(((const T *)h.logits)[blockIdx.x * h.vocab + target]);
	if (threadIdx.x == 0)
		h.loss[blockIdx.x] = whole + log2f(sum) * LN_2 - at_target;
	if (h.scale == 0.0f)
		return;
	__syncthreads(); /* the target's logit is read before its gradient replaces it */
	float to_p = h.scale / sum;
	for (size_t i = threadIdx.x; i < vectors; i += blockDim.x) {
		load<T, V>(z, h.logits, first + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			z[j] = fast_exp2((z[j] - whole) * LOG2_E) * to_p;
		if (i == target / V) {
#pragma unroll
			for (int j = 0; j < V; j++) /* a register has no index */
				z[j] -= j == (int)(target % V) ? h.scale : 0.0f;
		}
		store<T, V>(h.logits, first + i, z);
	}
}

/* The same with the terms of struct loss_terms, L = log sum_j e^(z_j):
 *   loss = L - (1-e) z_target - e mean(z) + y L^2
 *   dz_j = scale (p_j (1 + 2 y L) - (1-e)[j = target] - e/V), times 1 - (z_j/cap)^2
 * Plain rather than fast. */
struct head_with {
	struct head head;
	struct loss_terms terms;
};

template <typename T> KERNEL(BLOCK_MAX) cross_entropy_with(struct head_with w)
{
	after_earlier();
	const struct head &h = w.head;
	const struct loss_terms &t = w.terms;
	T *row = (T *)h.logits + blockIdx.x * h.vocab;
	size_t target = (size_t)h.targets[blockIdx.x];
	float max = -INFINITY, sum = 0.0f, all = 0.0f, at_target = widen(row[target]);

	for (size_t i = threadIdx.x; i < h.vocab; i += blockDim.x)
		max = fmaxf(max, widen(row[i]));
	max = block_max(max);
	for (size_t i = threadIdx.x; i < h.vocab; i += blockDim.x) {
		sum += expf(widen(row[i]) - max);
		all += widen(row[i]);
	}
	sum = block_sum(sum); /* its barriers: the target's logit was read by all */
	all = block_sum(all);
	float lse = max + logf(sum);
	if (threadIdx.x == 0)
		h.loss[blockIdx.x] = lse - at_target +
				     t.smoothing * (at_target - all / (float)h.vocab) +
				     t.z_loss * lse * lse;
	if (h.scale == 0.0f)
		return;
	float to_p = h.scale / sum * (1.0f + 2.0f * t.z_loss * lse);
	float even = t.smoothing / (float)h.vocab * h.scale;
	for (size_t i = threadIdx.x; i < h.vocab; i += blockDim.x) {
		float z = widen(row[i]), share = t.softcap > 0.0f ? z / t.softcap : 0.0f;
		float d = expf(z - max) * to_p - even;
		d -= i == target ? h.scale * (1.0f - t.smoothing) : 0.0f;
		put(row[i], d * (1.0f - share * share));
	}
}

extern "C" void cuda_cross_entropy_with(struct device *dev, float *loss, void *logits,
					const int32_t *targets, size_t rows, size_t vocab,
					float scale, const struct loss_terms *terms)
{
	struct head_with w = { { loss, logits, targets, vocab, scale }, *terms };
	launch(dev, AT("cross_entropy_with", rows, vocab, 0, 0), EITHER(dev, cross_entropy_with),
	       rows, threads_for(vocab, BLOCK_MAX), 0, w);
}

extern "C" void cuda_cross_entropy(struct device *dev, float *loss, void *logits,
				   const int32_t *targets, size_t rows, size_t vocab, float scale)
{
	bool wide = is_wide(dev, vocab, logits);
	struct head h = { loss, logits, targets, vocab, scale };
	launch(dev, AT("cross_entropy", rows, vocab, 0, 0), PICK(dev, wide, cross_entropy), rows,
	       threads_for(vocab / vector_of(dev, wide), BLOCK_MAX), 0, h);
}
