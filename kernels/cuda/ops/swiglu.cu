/* SPDX-License-Identifier: MIT */
/* swiglu.cu - out = silu(g) u with silu(g) = g s, s = 1/(1 + e^-g).
 *
 * Backward: du = dout g s;  dg = dout u s (1 + g (1 - s)).
 * A thread owns a vector of one row: the same columns of gate, up and out. Backward reads all that
 * it overwrites first, so it may run in place. */
#include "kernels/cuda/ops/kernel.cuh"

struct swiglu {
	void *out; /* forward: out; backward: dgate_up */
	const void *dout, *gate_up;
	size_t rows, vectors; /* vectors in a row of out */
};

template <typename T, int V> KERNEL(BLOCK) swiglu_forward(struct swiglu s)
{
	after_earlier();
	size_t i = flat_index();
	float g[V], u[V];

	if (i >= s.rows * s.vectors)
		return;
	size_t at = i / s.vectors * 2 * s.vectors + i % s.vectors;
	load<T, V>(g, s.gate_up, at);
	load<T, V>(u, s.gate_up, at + s.vectors);
#pragma unroll
	for (int j = 0; j < V; j++)
		u[j] *= g[j] * sigmoid(g[j]);
	store<T, V>(s.out, i, u);
}

template <typename T, int V> KERNEL(BLOCK) swiglu_backward(struct swiglu s)
{
	after_earlier();
	size_t i = flat_index();
	float g[V], u[V], d[V];

	if (i >= s.rows * s.vectors)
		return;
	size_t at = i / s.vectors * 2 * s.vectors + i % s.vectors;
	load<T, V>(g, s.gate_up, at);
	load<T, V>(u, s.gate_up, at + s.vectors);
	load<T, V>(d, s.dout, i);
#pragma unroll
	for (int j = 0; j < V; j++) {
		float part = sigmoid(g[j]), up = u[j];
		u[j] = d[j] * g[j] * part;
		g[j] = d[j] * up * part * (1.0f + g[j] * (1.0f - part));
	}
	store<T, V>(s.out, at, g);
	store<T, V>(s.out, at + s.vectors, u);
}

extern "C" void cuda_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
				    size_t width)
{
	bool wide = is_wide(dev, width, out, gate_up);
	struct swiglu s = { out, NULL, gate_up, rows, width / vector_of(dev, wide) };
	launch_flat(dev, AT("swiglu_forward", rows, width, 0, 0), PICK(dev, wide, swiglu_forward),
		    rows * s.vectors, s);
}

extern "C" void cuda_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
				     const void *gate_up, size_t rows, size_t width)
{
	bool wide = is_wide(dev, width, dgate_up, dout, gate_up);
	struct swiglu s = { dgate_up, dout, gate_up, rows, width / vector_of(dev, wide) };
	launch_flat(dev, AT("swiglu_backward", rows, width, 0, 0), PICK(dev, wide, swiglu_backward),
		    rows * s.vectors, s);
}
