/* SPDX-License-Identifier: MIT */
/* gelu.c - out = x P(x), where P is the normal distribution function or GPT-2's stand-in for it.
 *
 *   erf:   P(x) = (1 + erf(x/sqrt 2))/2            P'(x) = e^(-x^2/2)/sqrt(2 pi)
 *   tanh:  P(x) = 1/(1 + e^(-2u)),  u = sqrt(2/pi) (x + 0.044715 x^3),   P' = 2 u' P (1 - P)
 *   dx = dout (P + x P')
 *
 * erfc is Numerical Recipes' (3rd edition, 6.2.2) exp of a polynomial in 1/(1 + z/2): 1.2e-7
 * relative over the whole range, so the small tail of negative x keeps its digits; branch-free.
 * A task owns BLOCK elements. As a gate (GeGLU, Shazeer 2020): out = g P(g) u; gated.c walks its
 * rows. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { BLOCK = 16384 };

struct gelu {
	float *out; /* forward: out; backward: dx */
	const float *dout, *x;
	size_t count;
	enum gelu_form form;
};

/* P(x) of the erf form */
CPU_INLINE float normal(float x)
{
	float z = fabsf(x) * 0.70710678f;
	float t = 1.0f / (1.0f + 0.5f * z);
	float p = 0.17087277f;
	p = p * t - 0.82215223f;
	p = p * t + 1.48851587f;
	p = p * t - 1.13520398f;
	p = p * t + 0.27886807f;
	p = p * t - 0.18628806f;
	p = p * t + 0.09678418f;
	p = p * t + 0.37409196f;
	p = p * t + 1.00002368f;
	p = p * t - 1.26551223f;
	float tail = 0.5f * t * cpu_exp(p - z * z); /* P(-|x|) */
	return cpu_choose(x < 0.0f, tail, 1.0f - tail);
}

/* P(x) of the tanh form */
CPU_INLINE float logistic(float x)
{
	return 1.0f / (1.0f + cpu_exp(-1.59576912f * (x + 0.044715f * x * x * x)));
}

CPU_INLINE float distribution(float x, enum gelu_form form)
{
	return form == GELU_TANH ? logistic(x) : normal(x);
}

CPU_INLINE float slope(float x, enum gelu_form form)
{
	float p = distribution(x, form);

	if (form == GELU_ERF)
		return p + x * 0.39894228f * cpu_exp(-0.5f * x * x);
	return p + x * p * (1.0f - p) * 1.59576912f * (1.0f + 3.0f * 0.044715f * x * x);
}

/* The form is a constant in each loop, so that it becomes one of vectors. */
void cpu_gelu(float *out, const float *x, size_t count, enum gelu_form form)
{
	if (form == GELU_TANH)
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			out[i] = x[i] * distribution(x[i], GELU_TANH);
	else
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			out[i] = x[i] * distribution(x[i], GELU_ERF);
}

void cpu_gelu_slope(float *dx, const float *dout, const float *x, size_t count, enum gelu_form form)
{
	if (form == GELU_TANH)
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			dx[i] = dout[i] * slope(x[i], GELU_TANH);
	else
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			dx[i] = dout[i] * slope(x[i], GELU_ERF);
}

static void forward_task(const void *args, size_t index, unsigned worker)
{
	const struct gelu *g = args;
	size_t first = index * BLOCK;

	(void)worker;
	cpu_gelu(g->out + first, g->x + first, cpu_min(BLOCK, g->count - first), g->form);
}

static void backward_task(const void *args, size_t index, unsigned worker)
{
	const struct gelu *g = args;
	size_t first = index * BLOCK;

	(void)worker;
	cpu_gelu_slope(g->out + first, g->dout + first, g->x + first,
		       cpu_min(BLOCK, g->count - first), g->form);
}

void cpu_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
		      enum gelu_form form)
{
	const struct gelu g = { out, NULL, x, count, form };
	pool_run(dev->pool, cpu_tasks(count, BLOCK), forward_task, &g);
}

void cpu_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x, size_t count,
		       enum gelu_form form)
{
	const struct gelu g = { dx, dout, x, count, form };
	pool_run(dev->pool, cpu_tasks(count, BLOCK), backward_task, &g);
}

/* --- as a gate -------------------------------------------------------------------------------- */

void cpu_gelu_gate(float *out, const float *gate, const float *up, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		out[i] = gate[i] * logistic(gate[i]) * up[i];
}

void cpu_gelu_gate_slope(float *dgate, float *dup, const float *dout, const float *gate,
			 const float *up, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = gate[i], u = up[i], d = dout[i];
		dup[i] = d * g * logistic(g);
		dgate[i] = d * u * slope(g, GELU_TANH);
	}
}
