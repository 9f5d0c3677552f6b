/* SPDX-License-Identifier: MIT */
/* swiglu.c - out = silu(g) u with silu(g) = g s, s = 1/(1 + e^-g).
 *
 * Backward: du = dout g s;  dg = dout u s (1 + g (1 - s)).  A task owns some rows. */
#include "kernels/cpu/cpu.h"

struct swiglu {
	float *out; /* forward: [N,F]; backward: dgate_up [N,2F] */
	const float *dout, *gate_up;
	size_t rows, width, rows_per_task;
};

static void swiglu_forward_task(const void *args, size_t index, unsigned worker)
{
	const struct swiglu *s = args;
	size_t row = index * s->rows_per_task;
	size_t end = cpu_min(row + s->rows_per_task, s->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *restrict gate = s->gate_up + row * 2 * s->width;
		const float *restrict up = gate + s->width;
		float *restrict out = s->out + row * s->width;
		for (size_t i = 0; i < s->width; i++)
			out[i] = gate[i] / (1.0f + cpu_exp(-gate[i])) * up[i];
	}
}

/* No restrict between gate/up and their gradients: backward may run in place. */
static void swiglu_backward_task(const void *args, size_t index, unsigned worker)
{
	const struct swiglu *s = args;
	size_t row = index * s->rows_per_task;
	size_t end = cpu_min(row + s->rows_per_task, s->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *gate = s->gate_up + row * 2 * s->width, *up = gate + s->width;
		const float *dout = s->dout + row * s->width;
		float *dgate = s->out + row * 2 * s->width, *dup = dgate + s->width;
#pragma omp simd
		for (size_t i = 0; i < s->width; i++) {
			float g = gate[i], u = up[i], d = dout[i];
			float sigmoid = 1.0f / (1.0f + cpu_exp(-g));
			dup[i] = d * g * sigmoid;
			dgate[i] = d * u * sigmoid * (1.0f + g * (1.0f - sigmoid));
		}
	}
}

void cpu_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			size_t width)
{
	size_t per_task = cpu_rows_per_task(width);
	const struct swiglu s = { out, NULL, gate_up, rows, width, per_task };
	pool_run(dev->pool, cpu_tasks(rows, per_task), swiglu_forward_task, &s);
}

void cpu_swiglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			 size_t rows, size_t width)
{
	size_t per_task = cpu_rows_per_task(width);
	const struct swiglu s = { dgate_up, dout, gate_up, rows, width, per_task };
	pool_run(dev->pool, cpu_tasks(rows, per_task), swiglu_backward_task, &s);
}
