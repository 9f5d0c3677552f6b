/* SPDX-License-Identifier: MIT */
/* heads_sum.cu - with grouped heads cuDNN leaves dk and dv of every query head; those that share a
 * key head are added in order, in fp32, and rounded once.
 *
 * A thread owns V neighbouring elements of dk or dv in dqkv. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/heads.h"

struct sum {
	void *dqkv;
	const void *dk, *dv; /* [batch,T,H,C] */
	struct attention a;
	struct heads at;
};

template <typename T, int V> KERNEL(BLOCK) heads_sum(struct sum s)
{
	after_earlier();
	/* Columns in vectors, and in 32 bits: the one long division is that by the row. */
	uint32_t c = (uint32_t)s.a.head_dim / V, kv_heads = (uint32_t)s.a.kv_heads;
	uint32_t columns = 2 * kv_heads * c, group = (uint32_t)s.a.heads / kv_heads;
	size_t row = flat_index() / columns;
	uint32_t column = (uint32_t)(flat_index() - row * columns);
	uint32_t channel = column % c, head = column / c % kv_heads, which = column / c / kv_heads;
	float x[V] = { 0 }, y[V];

	if (row >= s.a.batch * s.a.seq)
		return;
	size_t from = (row * s.a.heads + head * group) * c + channel;
	for (uint32_t j = 0; j < group; j++) {
		load<T, V>(y, which ? s.dv : s.dk, from + j * c);
#pragma unroll
		for (int k = 0; k < V; k++)
			x[k] += y[k];
	}
	size_t to = row * s.at.row + (which ? s.at.value : s.at.key) + head * s.at.step;
	store<T, V>(s.dqkv, to / V + channel, x);
}

extern "C" void cuda_heads_sum(struct device *dev, void *dqkv, const void *dk, const void *dv,
			       const struct attention *a)
{
	bool wide = is_wide(dev, a->head_dim, dqkv, dk, dv);
	struct sum s = { dqkv, dk, dv, *a, heads_of(a) };
	size_t columns = 2 * a->kv_heads * a->head_dim / vector_of(dev, wide);

	launch_flat(dev, AT("heads_sum", a->batch, a->seq, a->kv_heads, a->head_dim),
		    PICK(dev, wide, heads_sum), a->batch * a->seq * columns, s);
}
