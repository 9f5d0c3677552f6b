/* SPDX-License-Identifier: MIT */
/* heads_sum.cu - with grouped heads cuDNN leaves dk and dv of every query head; those that share a
 * key head are added in order, in fp32, and rounded once.
 *
 * A thread owns one element of dk or dv in dqkv. */
#include "kernels/cuda/ops/kernel.cuh"

#include "kernels/cuda/heads.h"

struct sum {
	void *dqkv;
	const void *dk, *dv; /* [batch,T,H,C] */
	struct attention a;
	struct heads at;
};

template <typename T> static __global__ void heads_sum(struct sum s)
{
	size_t c = s.a.head_dim, group = s.a.heads / s.a.kv_heads, i = flat_index();
	size_t channel = i % c, kv_head = i / c % s.a.kv_heads, which = i / c / s.a.kv_heads % 2;
	size_t row = i / c / s.a.kv_heads / 2;
	float x = 0.0f;

	if (row >= s.a.batch * s.a.seq)
		return;
	const T *from = (const T *)(which ? s.dv : s.dk) + (row * s.a.heads + kv_head * group) * c +
			channel;
	for (size_t j = 0; j < group; j++)
		x += widen(from[j * c]);
	put(((T *)s.dqkv)[row * s.at.row + (which ? s.at.value : s.at.key) + kv_head * s.at.step +
			  channel],
	    x);
}

extern "C" void cuda_heads_sum(struct device *dev, void *dqkv, const void *dk, const void *dv,
			       const struct attention *a)
{
	struct sum s = { dqkv, dk, dv, *a, heads_of(a) };
	size_t threads = a->batch * a->seq * 2 * a->kv_heads * a->head_dim;

	launch_flat(dev, AT("heads_sum", a->batch, a->seq, a->kv_heads, a->head_dim),
		    dev->compute == COMPUTE_BF16 ? heads_sum<bf16> : heads_sum<float>, threads, s);
}
