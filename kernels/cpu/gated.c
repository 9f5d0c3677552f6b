/* SPDX-License-Identifier: MIT */
/* gated.c - gated feed-forward: out = a(g) u, a = silu (SwiGLU) or gelu (GeGLU, gelu.c).
 *
 * silu(g) = g s, s = 1/(1 + e^-g).  Backward: du = dout g s;  dg = dout u s (1 + g (1 - s)).
 * A task owns some rows. */
#include "kernels/cpu/cpu.h"

struct gated {
	float *out; /* forward: [N,F]; backward: dgate_up [N,2F] */
	const float *dout, *gate_up;
	size_t rows, width, rows_per_task;
	bool is_gelu;
};

static void silu_gate(float *out, const float *gate, const float *up, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		out[i] = gate[i] / (1.0f + cpu_exp(-gate[i])) * up[i];
}

static void silu_gate_slope(float *dgate, float *dup, const float *dout, const float *gate,
			    const float *up, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = gate[i], u = up[i], d = dout[i];
		float sigmoid = 1.0f / (1.0f + cpu_exp(-g));
		dup[i] = d * g * sigmoid;
		dgate[i] = d * u * sigmoid * (1.0f + g * (1.0f - sigmoid));
	}
}

static void forward_task(const void *args, size_t index, unsigned worker)
{
	const struct gated *s = args;
	size_t row = index * s->rows_per_task, end = cpu_min(row + s->rows_per_task, s->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *gate = s->gate_up + row * 2 * s->width;

		(s->is_gelu ? cpu_gelu_gate : silu_gate)(s->out + row * s->width, gate,
							 gate + s->width, s->width);
	}
}

/* Backward may run in place: each element is read before it is written. */
static void backward_task(const void *args, size_t index, unsigned worker)
{
	const struct gated *s = args;
	size_t row = index * s->rows_per_task, end = cpu_min(row + s->rows_per_task, s->rows);

	(void)worker;
	for (; row < end; row++) {
		const float *gate = s->gate_up + row * 2 * s->width;
		float *dgate = s->out + row * 2 * s->width;

		(s->is_gelu ? cpu_gelu_gate_slope : silu_gate_slope)(dgate, dgate + s->width,
								     s->dout + row * s->width, gate,
								     gate + s->width, s->width);
	}
}

static void run(struct device *dev, pool_task *task, struct gated s)
{
	s.rows_per_task = cpu_rows_per_task(s.width);
	pool_run(dev->pool, cpu_tasks(s.rows, s.rows_per_task), task, &s);
}

void cpu_swiglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
			size_t width)
{
	run(dev, forward_task, (struct gated){ out, NULL, gate_up, rows, width, 0, false });
}

void cpu_swiglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			 size_t rows, size_t width)
{
	run(dev, backward_task, (struct gated){ dgate_up, dout, gate_up, rows, width, 0, false });
}

void cpu_geglu_forward(struct device *dev, void *out, const void *gate_up, size_t rows,
		       size_t width)
{
	run(dev, forward_task, (struct gated){ out, NULL, gate_up, rows, width, 0, true });
}

void cpu_geglu_backward(struct device *dev, void *dgate_up, const void *dout, const void *gate_up,
			size_t rows, size_t width)
{
	run(dev, backward_task, (struct gated){ dgate_up, dout, gate_up, rows, width, 0, true });
}
