/* SPDX-License-Identifier: MIT */
/* gelu.cu - out = x P(x), where P is the normal distribution function or GPT-2's stand-in for it.
 *
 *   erf:   P(x) = erfc(-x/sqrt 2)/2                P'(x) = e^(-x^2/2)/sqrt(2 pi)
 *   tanh:  P(x) = 1/(1 + e^(-2u)),  u = sqrt(2/pi) (x + 0.044715 x^3),   P' = 2 u' P (1 - P)
 *   dx = dout (P + x P')
 *
 * A thread owns one vector of the flat array. */
#include "kernels/cuda/ops/finish.cuh"

struct gelu {
	void *out; /* forward: out; backward: dx */
	const void *dout, *x;
	size_t vectors;
	bool by_tanh;
	struct finish finish;
};

DEVICE float share(float x, bool by_tanh)
{
	if (by_tanh)
		return sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
	return 0.5f * erfcf(-0.70710678f * x);
}

DEVICE float share_slope(float x, float p, bool by_tanh)
{
	if (by_tanh)
		return p * (1.0f - p) * 1.59576912f * (1.0f + 3.0f * 0.044715f * x * x);
	return 0.39894228f * expf(-0.5f * x * x);
}

template <typename T, int V, bool FINISH> KERNEL(BLOCK) gelu_forward(struct gelu g)
{
	after_earlier();
	size_t i = flat_index();
	float x[V] = { 0 };

	if (i < g.vectors) {
		load<T, V>(x, g.x, i);
#pragma unroll
		for (int j = 0; j < V; j++)
			x[j] *= share(x[j], g.by_tanh);
		store<T, V>(g.out, i, x);
	}
	if (FINISH)
		finish_amax(g.finish, finish_vector<T, V>(g.finish, most_of_past(g.finish), x,
							  i * V, i < g.vectors));
}

template <typename T, int V, bool FINISH> KERNEL(BLOCK) gelu_backward(struct gelu g)
{
	after_earlier();
	size_t i = flat_index();
	float x[V], d[V] = { 0 };

	if (i < g.vectors) {
		load<T, V>(x, g.x, i);
		load<T, V>(d, g.dout, i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float p = share(x[j], g.by_tanh);
			d[j] *= p + x[j] * share_slope(x[j], p, g.by_tanh);
		}
		store<T, V>(g.out, i, d);
	}
	if (FINISH)
		finish_amax(g.finish, finish_vector<T, V>(g.finish, most_of_past(g.finish), d,
							  i * V, i < g.vectors));
}

extern "C" void cuda_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
				  enum gelu_form form)
{
	const struct place at = AT("gelu_forward", count, 0, 0, 0);
	bool wide = is_wide(dev, count, out, x);
	struct gelu g = { out, NULL, x, count / vector_of(dev, wide), form == GELU_TANH, {} };
	bool finish = finish_begins(dev, out, count, count, wide, &g.finish);

	launch_finishing(dev, at, PICK_FINISH(dev, wide, finish, gelu_forward), g.vectors, finish,
			 g);
}

extern "C" void cuda_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x,
				   size_t count, enum gelu_form form)
{
	const struct place at = AT("gelu_backward", count, 0, 0, 0);
	bool wide = is_wide(dev, count, dx, dout, x);
	struct gelu g = { dx, dout, x, count / vector_of(dev, wide), form == GELU_TANH, {} };
	bool finish = finish_begins(dev, dx, count, count, wide, &g.finish);

	launch_finishing(dev, at, PICK_FINISH(dev, wide, finish, gelu_backward), g.vectors, finish,
			 g);
}
