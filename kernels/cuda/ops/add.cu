/* SPDX-License-Identifier: MIT */
/* add.cu - to[i] += from[i], fp32: the sums of gradients of several ranks; of activations x factor
 * + delta, and cap tanh(x/cap). A thread owns one element, or as many as a vector has where the
 * arrays allow it. */
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

/* --- activations --- */

struct elements {
	void *out;
	const void *x, *delta;
	size_t vectors;
	float factor; /* or the cap */
};

template <typename T, int V> KERNEL(BLOCK) scaled_sum(struct elements e)
{
	after_earlier();
	size_t i = flat_index();
	float x[V], d[V] = {};

	if (i >= e.vectors)
		return;
	load<T, V>(x, e.x, i);
	if (e.delta)
		load<T, V>(d, e.delta, i);
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] = x[j] * e.factor + d[j];
	store<T, V>(e.out, i, x);
}

template <typename T, int V> KERNEL(BLOCK) softcap(struct elements e)
{
	after_earlier();
	size_t i = flat_index();
	float x[V];

	if (i >= e.vectors)
		return;
	load<T, V>(x, e.x, i);
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] = e.factor * tanhf(x[j] / e.factor);
	store<T, V>(e.out, i, x);
}

extern "C" void cuda_scaled_sum(struct device *dev, void *out, const void *x, float factor,
				const void *delta, size_t count)
{
	bool wide = is_wide(dev, count, out, x, delta);
	struct elements e = { out, x, delta, count / vector_of(dev, wide), factor };

	launch_flat(dev, AT("scaled_sum", count, 0, 0, 0), PICK(dev, wide, scaled_sum), e.vectors,
		    e);
}

extern "C" void cuda_softcap(struct device *dev, void *x, size_t count, float cap)
{
	bool wide = is_wide(dev, count, x);
	struct elements e = { x, x, NULL, count / vector_of(dev, wide), cap };

	launch_flat(dev, AT("softcap", count, 0, 0, 0), PICK(dev, wide, softcap), e.vectors, e);
}
