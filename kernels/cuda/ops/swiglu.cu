/* SPDX-License-Identifier: MIT */
/* swiglu.cu - gates: out = a(g) u with a(g) = g s, s = 1/(1 + e^-v). SwiGLU: silu, v = g. GeGLU:
 * gelu by tanh, v = 2 sqrt(2/pi) (g + 0.044715 g^3).
 *
 * Backward: du = dout g s;  dg = dout u s (1 + g v' (1 - s)).
 * A thread owns a vector of one row: the same columns of gate, up and out. Backward reads all that
 * it overwrites first, so it may run in place. */
#include "kernels/cuda/ops/finish.cuh"

struct swiglu {
	void *out; /* forward: out; backward: dgate_up */
	const void *dout, *gate_up;
	size_t rows, vectors; /* vectors in a row of out */
	struct finish finish;
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

template <typename A, typename T, int V, bool FINISH> KERNEL(BLOCK) gate_forward(struct swiglu s)
{
	after_earlier();
	size_t i = flat_index();
	float g[V], u[V] = { 0 };
	bool is_there = i < s.rows * s.vectors;

	if (is_there) {
		size_t at = i / s.vectors * 2 * s.vectors + i % s.vectors;
		load<T, V>(g, s.gate_up, at);
		load<T, V>(u, s.gate_up, at + s.vectors);
#pragma unroll
		for (int j = 0; j < V; j++)
			u[j] *= g[j] * sigmoid(A::inner(g[j]));
		store<T, V>(s.out, i, u);
	}
	if (FINISH)
		finish_amax(s.finish, finish_vector<T, V>(s.finish, most_of_past(s.finish), u,
							  i * V, is_there));
}

template <typename A, typename T, int V, bool FINISH> KERNEL(BLOCK) gate_backward(struct swiglu s)
{
	after_earlier();
	size_t i = flat_index();
	size_t at = i / s.vectors * 2 * s.vectors + i % s.vectors;
	float g[V] = { 0 }, u[V] = { 0 }, d[V];
	bool is_there = i < s.rows * s.vectors;

	if (is_there) {
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
	if (FINISH) {
		unsigned past = most_of_past(s.finish);
		unsigned most = finish_vector<T, V>(s.finish, past, g, at * V, is_there);
		finish_amax(s.finish,
			    larger(most, finish_vector<T, V>(s.finish, past, u,
							     (at + s.vectors) * V, is_there)));
	}
}

/* PICK_FINISH of one more type. */
#define GATE(dev, wide, finish, kernel, activation) \
	((dev)->compute == COMPUTE_BF16 ? ((finish) ? kernel<activation, bf16, 8, true> \
					   : (wide) ? kernel<activation, bf16, 8, false> \
						    : kernel<activation, bf16, 1, false>) \
					: ((finish) ? kernel<activation, float, 4, true> \
					   : (wide) ? kernel<activation, float, 4, false> \
						    : kernel<activation, float, 1, false>))

static struct swiglu gates(struct device *dev, bool wide, void *out, const void *dout,
			   const void *gate_up, size_t rows, size_t width)
{
	return { out, dout, gate_up, rows, width / vector_of(dev, wide), {} };
}

template <typename A>
static void forward(struct device *dev, const struct place &at, void *out, const void *gate_up,
		    size_t rows, size_t width)
{
	bool wide = is_wide(dev, width, out, gate_up);
	struct swiglu s = gates(dev, wide, out, NULL, gate_up, rows, width);
	bool finish = finish_begins(dev, out, rows * width, width, wide, &s.finish);

	launch_finishing(dev, at, GATE(dev, wide, finish, gate_forward, A), rows * s.vectors,
			 finish, s);
}

template <typename A>
static void backward(struct device *dev, const struct place &at, void *dgate_up, const void *dout,
		     const void *gate_up, size_t rows, size_t width)
{
	bool wide = is_wide(dev, width, dgate_up, dout, gate_up);
	struct swiglu s = gates(dev, wide, dgate_up, dout, gate_up, rows, width);
	bool finish = finish_begins(dev, dgate_up, 2 * rows * width, width, wide, &s.finish);

	launch_finishing(dev, at, GATE(dev, wide, finish, gate_backward, A), rows * s.vectors,
			 finish, s);
}

extern "C" void cuda_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
				    size_t width)
{
	forward<silu>(dev, AT("swiglu_forward", rows, width, 0, 0), out, gate_up, rows, width);
}

extern "C" void cuda_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
				     const void *gate_up, size_t rows, size_t width)
{
	backward<silu>(dev, AT("swiglu_backward", rows, width, 0, 0), dgate_up, dout, gate_up, rows,
		       width);
}

extern "C" void cuda_geglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
				   size_t width)
{
	forward<gelu_by_tanh>(dev, AT("geglu_forward", rows, width, 0, 0), out, gate_up, rows,
			      width);
}

extern "C" void cuda_geglu_backward(struct device *dev, void *dgate_up, const void *dout,
				    const void *gate_up, size_t rows, size_t width)
{
	backward<gelu_by_tanh>(dev, AT("geglu_backward", rows, width, 0, 0), dgate_up, dout,
			       gate_up, rows, width);
}
