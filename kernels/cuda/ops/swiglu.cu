/* SPDX-License-Identifier: MIT */
/* swiglu.cu - gates: out = a(g) u with a(g) = g s, s = 1/(1 + e^-v). SwiGLU: silu, v = g. GeGLU: gelu by tanh,
 * v = 2 sqrt(2/pi) (g + 0.044715 g^3).
 *
 * Backward: du = dout g s;  dg = dout u s (1 + g v' (1 - s)).
 * A thread owns a vector of one row: the same columns of gate, up and out. Backward reads all that
 * it overwrites first, so it may run in place. */
#include "kernels/cuda/ops/kernel.cuh"

struct swiglu {
	void *out; /* forward: out; backward: dgate_up */
	const void *dout, *gate_up;
	size_t rows, vectors; /* vectors in a row of out */
};

struct silu {
	DEVICE float inner(float g)
	{
		return g;
	}
	DEVICE float slope(float)
	{
		return 1.0f;
	}
};

struct gelu_by_tanh {
	DEVICE float inner(float g)
	{
		return 1.59576912f * (g + 0.044715f * g * g * g);
	}
	DEVICE float slope(float g)
	{
		return 1.59576912f * (1.0f + 3.0f * 0.044715f * g * g);
	}
};

template <typename A, typename T, int V> KERNEL(BLOCK) gate_forward(struct swiglu s)
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
		u[j] *= g[j] * sigmoid(A::inner(g[j]));
	store<T, V>(s.out, i, u);
}

template <typename A, typename T, int V> KERNEL(BLOCK) gate_backward(struct swiglu s)
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
		float part = sigmoid(A::inner(g[j])), up = u[j];
		u[j] = d[j] * g[j] * part;
		g[j] = d[j] * up * part * (1.0f + g[j] * A::slope(g[j]) * (1.0f - part));
	}
	store<T, V>(s.out, at, g);
	store<T, V>(s.out, at + s.vectors, u);
}

#define GATE(dev, wide, kernel, activation) \
	((dev)->compute == COMPUTE_BF16 \
		 ? ((wide) ? kernel<activation, bf16, 8> : kernel<activation, bf16, 1>) \
		 : ((wide) ? kernel<activation, float, 4> : kernel<activation, float, 1>))

static struct swiglu gates(struct device *dev, bool wide, void *out, const void *dout,
			   const void *gate_up, size_t rows, size_t width)
{
	return { out, dout, gate_up, rows, width / vector_of(dev, wide) };
}

extern "C" void cuda_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
				    size_t width)
{
	bool wide = is_wide(dev, width, out, gate_up);
	struct swiglu s = gates(dev, wide, out, NULL, gate_up, rows, width);
	launch_flat(dev, AT("swiglu_forward", rows, width, 0, 0),
		    GATE(dev, wide, gate_forward, silu), rows * s.vectors, s);
}

extern "C" void cuda_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
				     const void *gate_up, size_t rows, size_t width)
{
	bool wide = is_wide(dev, width, dgate_up, dout, gate_up);
	struct swiglu s = gates(dev, wide, dgate_up, dout, gate_up, rows, width);
	launch_flat(dev, AT("swiglu_backward", rows, width, 0, 0),
		    GATE(dev, wide, gate_backward, silu), rows * s.vectors, s);
}

extern "C" void cuda_geglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
				   size_t width)
{
	bool wide = is_wide(dev, width, out, gate_up);
	struct swiglu s = gates(dev, wide, out, NULL, gate_up, rows, width);
	launch_flat(dev, AT("geglu_forward", rows, width, 0, 0),
		    GATE(dev, wide, gate_forward, gelu_by_tanh), rows * s.vectors, s);
}

extern "C" void cuda_geglu_backward(struct device *dev, void *dgate_up, const void *dout,
				    const void *gate_up, size_t rows, size_t width)
{
	bool wide = is_wide(dev, width, dgate_up, dout, gate_up);
	struct swiglu s = gates(dev, wide, dgate_up, dout, gate_up, rows, width);
	launch_flat(dev, AT("geglu_backward", rows, width, 0, 0),
		    GATE(dev, wide, gate_backward, gelu_by_tanh), rows * s.vectors, s);
}
