/* SPDX-License-Identifier: MIT */
/* add.cu - to[i] += from[i], fp32: the sums of gradients of several ranks. A thread owns one element, or
 * four where both arrays allow it. */
#include "kernels/cuda/ops/kernel.cuh"

struct add {
	float *to;
	const float *from;
	size_t vectors;
};

template <int V> KERNEL(BLOCK) add(struct add a)
{
	after_earlier();
	size_t i = flat_index();
	float x[V], y[V];

	if (i >= a.vectors)
		return;
	load<float, V>(x, a.to, i);
	load<float, V>(y, a.from, i);
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] += y[j];
	store<float, V>(a.to, i, x);
}

extern "C" void cuda_add(struct device *dev, float *to, const float *from, size_t count)
{
	const struct place at = AT("add", count, 0, 0, 0);
	enum { WIDE = 4 };
	bool wide = count % WIDE == 0 && (uintptr_t)to % 16 == 0 && (uintptr_t)from % 16 == 0;
	struct add a = { to, from, wide ? count / WIDE : count };

	launch_flat(dev, at, wide ? add<WIDE> : add<1>, a.vectors, a);
}
